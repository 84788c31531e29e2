import pytest

from mmcorl.config import Config
from mmcorl.errors import MmcorlError
from mmcorl.training import starting
from mmcorl.training.folders import RunFolder


def a_config(tmp_path, agents=("ann", "bob"), **sections):
    tree = {
        "run": {"dir": tmp_path, "name": "run"},
        "agents": {name: {"model": "somewhere"} for name in agents},
        "data": {"train": {"scenes": {"size": 24}}},
    }
    return Config.model_validate(tree | sections)


def some_work(folder, *names):
    for name in names:
        folder.agent(name).mkdir(parents=True)
        folder.metrics(name).write_text('{"kind": "train", "step": 1}\n')
        folder.logs.mkdir(exist_ok=True)
        folder.log(name).write_text("log")
    folder.config.write_text("run: {}\n")


def test_a_folder_that_is_no_run_is_never_taken(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("five years of work")
    with pytest.raises(MmcorlError, match="is not the folder of a run"):
        starting.require_new(a_config(tmp_path), ["ann", "bob"])


def test_a_run_that_did_nothing_yet_may_start_again(tmp_path):
    config = a_config(tmp_path)
    folder = RunFolder.of(config)
    folder.agent("ann").mkdir(parents=True)
    folder.metrics("ann").write_text('{"kind": "eval", "step": 0}\n')
    folder.checkpoints("ann").mkdir()
    folder.config.write_text("run: {}\n")
    starting.require_new(config, ["ann", "bob"])


def test_only_the_agents_that_start_here_are_looked_at(tmp_path):
    config = a_config(tmp_path)
    some_work(RunFolder.of(config), "ann")
    starting.require_new(config, ["bob"])
    with pytest.raises(MmcorlError, match="already holds a run of ann"):
        starting.require_new(config, ["ann"])


def test_clearing_takes_what_runs_made_and_nothing_else(tmp_path):
    config = a_config(tmp_path)
    folder = RunFolder.of(config)
    some_work(folder, "ann", "bob", "former")
    (folder.path / "notes.md").write_text("keep me")
    starting.clear(config, ["bob"])
    assert folder.metrics("ann").exists() and not folder.metrics("bob").exists()
    starting.clear(config, ["ann", "bob"])
    assert not any(folder.metrics(name).exists() for name in ("ann", "bob", "former"))
    assert not list(folder.logs.iterdir())
    assert (folder.path / "notes.md").read_text() == "keep me"


def test_a_second_launcher_is_refused_while_the_first_runs(tmp_path):
    folder = RunFolder.of(a_config(tmp_path))
    with starting.locked(folder, ["ann"]):
        with starting.locked(folder, ["bob"]):
            pass
        with (
            pytest.raises(MmcorlError, match="another process is training ann"),
            starting.locked(folder, ["ann"]),
        ):
            pass
    with starting.locked(folder, ["ann"]):
        pass


@pytest.mark.parametrize(
    "change",
    [{"logging": {"completions": False}}, {"evaluation": {"every": 0}}, {"checkpoints": {"every": 7}}],
)
def test_a_resumed_run_may_change_what_it_writes(tmp_path, change):
    starting.require_same(a_config(tmp_path), a_config(tmp_path, **change))


def test_a_run_may_be_resumed_where_its_folder_was_moved_to(tmp_path):
    moved = {"run": {"dir": tmp_path / "elsewhere", "name": "run"}}
    starting.require_same(a_config(tmp_path), a_config(tmp_path, **moved))


def test_a_resumed_run_may_not_change_what_it_computes(tmp_path):
    with pytest.raises(
        MmcorlError, match=r"optimizer\.lr is 1e-06 in the run and 0\.001 now.*Set optimizer\.lr=1e-06"
    ):
        starting.require_same(a_config(tmp_path), a_config(tmp_path, optimizer={"lr": 1e-3}))
    with pytest.raises(MmcorlError, match=r"agents\.cid\.\w+ is None in the run"):
        starting.require_same(a_config(tmp_path), a_config(tmp_path, agents=("ann", "bob", "cid")))
