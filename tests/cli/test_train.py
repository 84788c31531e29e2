import pytest

from mmcorl.cli.train import main
from mmcorl.config_loading import load_config
from mmcorl.data.storage import write_problems
from mmcorl.problems import Gold, Problem

RUN = """
run: {{name: run, dir: '{home}/runs', steps: 2}}
agents:
  ann: {{model: '{home}/model'}}
  bob: {{model: '{home}/model'}}
data:
  train: {{path: '{home}/data'}}
rollouts: {{problems_per_step: 2}}
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    write_problems([(Problem(f"p{i}", "1 + 1?"), Gold("2")) for i in range(4)], tmp_path / "data")
    (tmp_path / "run.yaml").write_text(RUN.format(home=tmp_path))
    return tmp_path


def test_print_config_shows_a_configuration_that_can_be_read_back(home, capsys):
    assert main([str(home / "run.yaml"), "--print-config", "run.steps=7"]) == 0
    (home / "printed.yaml").write_text(capsys.readouterr().out)
    assert load_config(home / "printed.yaml") == load_config(home / "run.yaml", ["run.steps=7"])
    assert not (home / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["rollouts.per_problm=4"],
            "rollouts.per_problm is not a setting; the nearest is rollouts.per_problem",
        ),
        (["agents.bob.model=./nowhere"], "agents.bob.model=./nowhere does not exist"),
        (["--plan", "agents.bob.model=./nowhere"], "agents.bob.model=./nowhere does not exist"),
        (["agents.bob.model={home}/data"], "has no config.json"),
        (["agents.bob.model={home}/run.yaml"], "is a file; give the folder"),
        (["data.train.path={home}/none.jsonl"], "none.jsonl does not exist"),
        (["data.train.path={home}/empty.jsonl"], "holds no problems"),
        (["data.train.path={home}/broken.jsonl"], "picture.png"),
        (["data.train.path={home}/choices.jsonl"], "choices"),
        (["rollouts.problems_per_step=8"], "data.train has 4 problems and rollouts.problems_per_step=8"),
        (["data.eval.path={home}/unlabelled.jsonl"], "has no answer"),
        (["reward.rule=gold", "data.train.path={home}/unlabelled.jsonl"], "has no answer"),
        (["--agent", "cid"], "--agent cid is none of the run's agents: ann, bob"),
        (["run.name=../run"], "run.name: '../run' cannot be the name of a folder"),
        (["run.dir={home}/run.yaml"], "run.yaml/run cannot be written (Not a directory)"),
        (
            ["cohort.store=memory://here"],
            "cohort.store=memory://here is for threads, and agents are processes",
        ),
        (["--resume"], "holds no run to resume"),
    ],
)
def test_a_mistake_is_one_clear_error_and_nothing_is_written(home, arguments, message, capsys):
    (home / "picture.png").write_bytes(b"\x89PNG and then nothing")
    rows = {
        "empty": "",
        "broken": '{"id": "a", "question": "<image> How many?", "images": ["picture.png"], "answer": "2"}\n'
        * 1,
        "choices": '{"id": "a", "question": "Which?", "choices": "A, B", "answer": "A"}\n',
        "unlabelled": '{"id": "a", "question": "1 + 1?"}\n{"id": "b", "question": "1 + 2?"}\n',
    }
    for name, text in rows.items():
        (home / f"{name}.jsonl").write_text(text)
    code = main([str(home / "run.yaml"), *(argument.format(home=home) for argument in arguments)])
    captured = capsys.readouterr()
    assert code == 2
    assert captured.err.startswith("error: ") and message in captured.err
    assert not (home / "runs").exists()


def test_a_name_below_a_folder_that_exists_here_is_a_path_and_any_other_may_be_on_the_hub(home, monkeypatch):
    from mmcorl.training.preflight import looks_like_a_path

    monkeypatch.chdir(home)
    assert looks_like_a_path("model/tiny") and looks_like_a_path("a/b/c") and looks_like_a_path("~/m")
    assert not looks_like_a_path("Qwen/Qwen2.5-VL-7B-Instruct") and not looks_like_a_path("gpt2")
