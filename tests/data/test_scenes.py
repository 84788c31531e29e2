"""The rendered scenes: reproducible, answerable from the picture, and uniform in their answers."""

from collections import Counter

import numpy as np
import pytest
from PIL import Image

from mmcorl.config import ScenesConfig
from mmcorl.data.scenes import COLOURS, make_scene, scenes

TASKS = ("count", "compare", "add", "chart")


def picture(problem) -> Image.Image:
    (image,) = problem.images
    return image


def pixels_near(image: Image.Image, colour: str, box=None) -> int:
    """Pixels whose every channel is within the colour jitter of a named colour."""
    pixels = np.asarray(image.crop(box)).astype(int)
    return int((abs(pixels - COLOURS[colour]) <= 12).all(axis=-1).sum())


def shapes_of(image: Image.Image, colour: str) -> int:
    """Count cells of the 3x3 grid that hold a shape of this colour, from pixels alone."""
    cell = image.width // 3
    boxes = [(x * cell, y * cell, (x + 1) * cell, (y + 1) * cell) for y in range(3) for x in range(3)]
    return sum(pixels_near(image, colour, box) > 40 for box in boxes)


def asked_colours(question: str) -> list[str]:
    return [word for word in question.split() if word in COLOURS]


@pytest.mark.parametrize("index", range(30))
def test_count_is_what_the_picture_shows(index):
    problem, gold = make_scene("count", 3, index)
    (colour,) = asked_colours(problem.question)
    assert problem.question == f"How many {colour} shapes are there?"
    assert shapes_of(picture(problem), colour) == int(gold.answer)


@pytest.mark.parametrize("index", range(30))
def test_compare_and_add_are_what_the_picture_shows(index):
    problem, gold = make_scene("compare", 3, index)
    more, fewer = (shapes_of(picture(problem), colour) for colour in asked_colours(problem.question))
    assert more - fewer == int(gold.answer)
    problem, gold = make_scene("add", 3, index)
    assert sum(shapes_of(picture(problem), colour) for colour in asked_colours(problem.question)) == int(
        gold.answer
    )


@pytest.mark.parametrize("index", range(30))
def test_chart_value_is_the_height_of_the_bar(index):
    problem, gold = make_scene("chart", 3, index)
    image = picture(problem)
    (colour,) = asked_colours(problem.question)
    height = max(pixels_near(image, colour, (x, 0, x + 1, image.height)) for x in range(image.width))
    assert round(height / 9) == int(gold.answer)


@pytest.mark.parametrize(
    ("task", "answers"),
    [("count", range(5)), ("compare", range(5)), ("add", range(9)), ("chart", range(1, 9))],
)
def test_answers_are_uniform(task, answers):
    tally = Counter(int(make_scene(task, 0, index)[1].answer) for index in range(600))
    assert set(tally) == set(answers)
    assert max(tally.values()) < 1.6 * 600 / len(answers)


@pytest.mark.parametrize("task", TASKS)
def test_a_scene_does_not_depend_on_the_set_it_is_drawn_into(task):
    long = scenes(ScenesConfig(tasks=(task,), size=12, seed=5, choice_share=0.5))
    assert scenes(ScenesConfig(tasks=(task,), size=7, seed=5, choice_share=0.5)) == long[:7]
    assert scenes(ScenesConfig(tasks=(task,), size=7, seed=6, choice_share=0.5)) != long[:7]


def test_tasks_take_turns_and_ids_are_unique():
    problems = [problem for problem, _ in scenes(ScenesConfig(tasks=TASKS, size=10))]
    assert [problem.id.split("-")[0] for problem in problems] == [*TASKS, *TASKS, "count", "compare"]
    assert len({problem.id for problem in problems}) == 10


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("index", range(8))
def test_multiple_choice_asks_the_same_scene(task, index):
    question, number = make_scene(task, 1, index)
    choice, letter = make_scene(task, 1, index, as_choice=True)
    assert (question.kind, question.choices) == ("math", None)
    assert choice.kind == "choice" and choice.choices is not None
    assert (choice.question, choice.images) == (question.question, question.images)
    assert len(set(choice.choices)) == 4
    assert choice.choices["ABCD".index(letter.answer)] == number.answer


def test_choice_share_and_the_place_of_the_right_option():
    drawn = scenes(ScenesConfig(size=400, choice_share=0.5))
    letters = Counter(gold.answer for problem, gold in drawn if problem.choices)
    assert 160 < letters.total() < 240
    assert set(letters) == set("ABCD") and min(letters.values()) > 25
    assert not any(problem.choices for problem, _ in scenes(ScenesConfig(size=50)))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("size", [28, 84, 200])
def test_pictures_have_the_size_asked_for(task, size):
    problem, _ = make_scene(task, 0, 0, image_size=size)
    assert picture(problem).size == (size, size)
    assert picture(problem).mode == "RGB"
