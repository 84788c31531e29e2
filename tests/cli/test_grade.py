import gzip
import json

import pytest

from mmcorl.cli.grade import main

MCQ = {"question": "How large is the angle?", "choices": ["30°", "40°", "50°"]}


@pytest.fixture
def graded(tmp_path):
    """`graded(lines, *options)`: exit code and rows of OUT; a line is a dict, or text as it stands."""

    def run(lines, *options, name="in.jsonl"):
        text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines).encode()
        source, out = tmp_path / name, tmp_path / "out.jsonl"
        source.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        code = main([str(source), str(out), *options])
        return code, [json.loads(row) for row in out.read_text().splitlines()]

    return run


def explained(capsys, tmp_path, line, *options):
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(line) + "\n")
    assert main([str(source), "--explain", "1", *options]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "verdict", "why"),
    [
        ({"gold": "3/4", "response": r"<think>7</think> It is \boxed{0.75}."}, True, "box; the same canonical form"),
        ({"gold": "8", "response": "<answer>9</answer>"}, False, "tag; not equal by exact arithmetic"),
        ({"gold": r"\sin^2 x", "pred": r"1-\cos^2 x"}, True, "pred; equal to 40 digits"),
        ({"gold": "5 cm", "pred": "5 kg"}, False, "pred; not equal in unit (kg against cm)"),
        ({"gold": "[1, 2]", "pred": "[1, 3]"}, False, "pred; not equal part by part (list against list)"),
        ({"gold": r"\sum_{k=1}^{3} k", "pred": "6"}, True, "pred; equal by symbolic algebra"),
        ({"gold": "5", "pred": "east"}, False, "pred; text against math"),
        ({"gold": "B", "response": "The answer is 40 degrees.", **MCQ}, True, "phrase; the same canonical form"),
        ({"gold": "B", "pred": "C", **MCQ}, False, "pred; another option"),
        ({"gold": "Paris", "pred": "the Rome", "answer_type": "text"}, False, "pred; other words"),
        ({"gold": "f = 1", "response": "```\nf = 1\n```", "answer_type": "code"}, True, "code block; the same canonical form"),
        ({"gold": "7", "response": "Perhaps 7 is nice"}, None, "the response states no answer that can be read"),
        ({"gold": "7", "response": None}, None, "the response states no answer that can be read"),
        ({"gold": "7", "pred": None}, None, "pred says nothing that can be read"),
        ({"gold": " ", "pred": "7"}, None, "pred; the gold says nothing that can be read"),
    ],
)  # fmt: skip
def test_verdict_and_why(graded, line, verdict, why):
    code, [row] = graded([line])
    assert (code, row["verdict"]) == (0, verdict)
    assert row["why"] == why


def test_rows_hold_id_and_canonical_forms(graded):
    line = {"id": 12, "gold": 1.5, "pred": r"\frac{3}{2}", "model": "another key"}
    assert graded([line]) == (
        0,
        [
            {
                "id": "12",
                "verdict": True,
                "answer": "3/2",
                "gold": "3/2",
                "why": "pred; the same canonical form",
            }
        ],
    )


def test_last_number_is_an_option(graded):
    line = {"gold": "7", "response": "Perhaps 7 is nice"}
    assert graded([line], "--last-number")[1][0]["why"] == "last_number; the same canonical form"


@pytest.mark.parametrize(
    ("line", "strict", "mathvista", "why"),
    [
        (
            {"gold": "1.2", "pred": "1.249", "precision": 1, "answer_type": "float"},
            True,
            True,
            "pred; not equal by exact arithmetic, but right by mathvista (precision 1, truncated)",
        ),
        (
            {"gold": "7", "pred": "7.9", "answer_type": "integer"},
            False,
            True,
            "pred; not equal by exact arithmetic, but right by mathvista (truncated)",
        ),
        (
            {"gold": "red", "response": "The answer is rad.", "choices": ["red", "green"]},
            None,
            True,
            "nearest option; the same canonical form",
        ),
        ({"gold": "7", "pred": "8"}, False, False, "pred; not equal by exact arithmetic"),
    ],
)
def test_a_convention_allows_more_and_says_so(graded, line, strict, mathvista, why):
    assert graded([line])[1][0]["verdict"] is strict
    [row] = graded([line], "--convention", "mathvista")[1]
    assert (row["verdict"], row["why"]) == (mathvista, why)


def test_a_line_may_ask_for_a_precision_without_a_convention(graded):
    [row] = graded([{"gold": "1.2", "pred": "1.249", "precision": 1}])[1]
    assert (
        row["why"] == "pred; not equal by exact arithmetic, but right by what the line allows (precision 1)"
    )


def test_a_bad_line_is_reported_and_kept_and_the_others_are_graded(graded, capsys):
    lines = [
        "{nonsense",
        {"id": "a", "gold": "5", "pred": "5"},
        "",
        {"id": "b", "pred": "5"},
        {"gold": "5"},
        {"gold": "5", "pred": "5", "response": "5"},
        {"gold": "5", "pred": "5", "answer_type": "riddle"},
        {"gold": "5", "pred": ["5"]},
        "[1]",
        {"gold": "5", "pred": "6"},
    ]
    code, rows = graded(lines)
    assert code == 1
    assert [row["id"] for row in rows] == ["1", "a", "b", "5", "6", "7", "8", "9", "10"]
    assert [row["verdict"] for row in rows] == [None, True, None, None, None, None, None, None, False]
    shown = capsys.readouterr()
    for text in (
        "line 1: not JSON",
        "line 4: gold: Field required",
        "line 5: give exactly one of `pred` and `response`",
        "line 6: give exactly one of `pred` and `response`",
        "line 7: answer_type 'riddle' is none of choice,",
        "line 8: pred: Input should be a valid string",
        "line 9: not an object",
    ):
        assert text in shown.err
    assert "9 lines: 1 true, 1 false, 0 null, 7 not usable" in shown.out


def test_gzip(graded):
    assert graded([{"gold": "5", "pred": "5"}], name="in.jsonl.gz")[1][0]["verdict"] is True


def test_a_damaged_archive_is_an_error(tmp_path, capsys):
    source = tmp_path / "in.jsonl.gz"
    source.write_bytes(gzip.compress(b'{"gold": "5", "pred": "5"}\n' * 1000)[:-10])
    assert main([str(source), str(tmp_path / "out.jsonl")]) == 2
    assert "error: IN=" in capsys.readouterr().err


def test_explain_shows_every_place_and_which_was_taken(capsys, tmp_path):
    text = r"The answer is 5. No: \boxed{7}"
    shown = explained(capsys, tmp_path, {"gold": "5+2", "response": text})
    assert "box" in shown and "[taken]" in shown
    assert "phrase" in shown and "[not needed]" in shown
    assert "verdict   true: box; the same canonical form" in shown


def test_explain_shows_the_options(capsys, tmp_path):
    shown = explained(capsys, tmp_path, {"gold": "B", "pred": "40", **MCQ})
    assert "option B  '40°'" in shown
    assert "answer    choice 'B'" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl", "out.jsonl"], "IN=missing.jsonl is no file"),
        (["in.jsonl", "in.jsonl"], "OUT=in.jsonl is the file to read"),
        (
            ["in.jsonl", "out.jsonl", "--convention", "mathvist"],
            "no grading convention 'mathvist'; there are: strict",
        ),
        (["in.jsonl", "none/out.jsonl"], "OUT=none/out.jsonl cannot be written"),
        (["missing.jsonl", "--explain", "1"], "IN=missing.jsonl cannot be read"),
        (["in.jsonl", "--explain", "5"], "--explain=5: in.jsonl has no such line"),
        (["in.jsonl", "--explain", "2"], "line 2: not JSON"),
    ],
)
def test_wrong_use_is_exit_code_2_with_a_message(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"gold": "5", "pred": "5"}\n{\n')
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "in.jsonl").read_text().startswith('{"gold"'), "the input is left alone"


@pytest.mark.parametrize("arguments", [["in.jsonl"], ["in.jsonl", "out.jsonl", "--explain", "1"], []])
def test_out_or_explain(arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
