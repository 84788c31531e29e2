from __future__ import annotations

import numpy as np
from PIL import Image

from mmcorl.data.page import draw_page
from mmcorl.problems import Gold, Problem

BLUE = (10, 20, 230)


def share_of_blue(page: Image.Image) -> float:
    return float((np.asarray(page) == BLUE).all(axis=-1).mean())


def test_images_stand_on_the_page_within_its_width():
    plain = draw_page(Problem("a", "q"), None)
    wide = draw_page(Problem("a", "q", (Image.new("RGB", (3000, 300), BLUE),)), None)
    tiny = draw_page(Problem("a", "q", (Image.new("RGB", (20, 20), BLUE),)), None)
    assert plain.width == wide.width == tiny.width
    assert share_of_blue(plain) == 0
    assert share_of_blue(wide) > 0.2
    assert share_of_blue(tiny) > 0.1


def test_long_questions_options_and_golds_add_lines():
    short = draw_page(Problem("a", "word"), None)
    longer = draw_page(Problem("a", "word " * 200), None)
    with_options = draw_page(Problem("a", "word", (), ("one", "two\nlines")), None)
    assert longer.height > short.height + 100
    assert with_options.height > short.height + 60
    assert draw_page(Problem("a", "word"), Gold("3")).tobytes() != short.tobytes()


def test_an_empty_question_can_be_drawn():
    assert draw_page(Problem("a", "", (Image.new("RGB", (50, 50)),)), Gold("")).mode == "RGB"
