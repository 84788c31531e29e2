import pytest

from mmcorl.training.interaction import roles


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("The review is right. <score>3</score>", 3),
        ("<score> 2\n</score> and that is all", 2),
        ("<score>3</score> no, wait: <score>1</score>", 1),
        ("Score: 3", None),
        ("<score>3", None),
        ("<score></score>", None),
        ("<score>4</score>", None),
        ("<score>0</score>", None),
        ("<score>2.5</score>", None),
        ("<score>3/3</score>", None),
        ("<score>three</score>", None),
        ("<score>３</score>", None),
        ("<score>3</score> or rather <score>?</score>", None),
        ("", None),
    ],
)
def test_a_score_is_read_as_it_stands_or_not_at_all(text, score):
    assert roles.read_score(text) == score


def test_without_references_a_solver_reads_what_a_lone_agent_reads():
    assert roles.solve("1 + 1?", "Use a box.") == "1 + 1?\nUse a box."
    assert roles.solve("1 + 1?", "") == "1 + 1?"


def test_every_prompt_begins_with_the_task_and_holds_each_text_once():
    prompts = {
        "solve": roles.solve("TASK", "BOX IT", [("S1", "E1"), ("S2", "E2")]),
        "evaluate": roles.evaluate("TASK", "S1"),
        "score": roles.score("TASK", "S1", "E1"),
        "debate": roles.debate("TASK", "BOX IT", "S1", ["S2", "S3"]),
    }
    held = {"solve": "S1 E1 S2 E2", "evaluate": "S1", "score": "S1 E1", "debate": "S1 S2 S3"}
    for name, prompt in prompts.items():
        assert prompt.startswith("TASK\n") and prompt.count("TASK") == 1
        assert all(prompt.count(text) == 1 for text in held[name].split())
    assert [name for name, prompt in prompts.items() if prompt.endswith("BOX IT")] == ["solve", "debate"]
    assert "BOX IT" not in prompts["evaluate"] + prompts["score"]


def test_braces_and_tags_of_a_text_stay_as_they_are():
    assert r"\frac{1}{2} {task} %s" in roles.evaluate("TASK {x}", r"\frac{1}{2} {task} %s")
    assert roles.evaluate("TASK {x}", "S").startswith("TASK {x}")


def test_the_scorers_own_example_is_a_score_that_can_be_read():
    assert roles.read_score(roles.score("TASK", "S", "E")) in roles.SCORES
