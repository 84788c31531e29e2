import re

import pytest

from mmcorl.data.hub import Hub
from mmcorl.data.sources import declaration_of, is_declared
from mmcorl.errors import MmcorlError

ANGLES = """
hub: {repo: someone/angles, split: test, configs: [figures]}
columns: {id: qid, question: text, images: figure, answer: label}
quirks:
  - [answer_tag, label]
  - [split_options, text, choices]
facts: 400 questions about figures.
"""


def test_a_yaml_file_is_a_declaration_named_as_it(tmp_path):
    (tmp_path / "angles.yaml").write_text(ANGLES)
    declared = declaration_of(str(tmp_path / "angles.yaml"))
    assert declared.name == "angles" and declared.hub == Hub("someone/angles", "test", ("figures",))
    assert declared.columns.id == "qid" and declared.columns.kind == "kind"
    assert declared.quirks == (("answer_tag", "label"), ("split_options", "text", "choices"))


@pytest.mark.parametrize(
    ("text", "with_", "message"),
    [
        ("answer_tag, label", "answer_tga, label", "'answer_tga' is no quirk; there are first_of, "),
        ("split_options, text, choices", "split_options, text", "missing a required argument: 'choices'"),
        ("answer: label", "anwser: label", "columns.anwser is not a setting; the nearest is columns.answer"),
        ("split: test", "splt: test", "hub.splt='test': Unexpected keyword argument"),
        ("facts", "fact", "facts is missing and has no default"),
    ],
)
def test_a_mistake_is_named_with_the_file(tmp_path, text, with_, message):
    path = tmp_path / "angles.yaml"
    path.write_text(ANGLES.replace(text, with_))
    with pytest.raises(MmcorlError, match=rf"(?s){re.escape(str(path))}:.*{re.escape(message)}"):
        declaration_of(str(path))


def test_a_file_with_rows_is_no_declaration():
    assert is_declared("gsm8k") and is_declared("mine.yaml") and not is_declared("mine.jsonl")
