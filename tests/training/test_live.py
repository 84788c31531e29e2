import io

import pytest
from rich.console import Console

from mmcorl.config import Config
from mmcorl.training.folders import RunFolder
from mmcorl.training.live import AgentProgress, LiveView, as_line, as_table, sparks
from mmcorl.training.metrics import MetricsLog

TRAIN = {
    "reward": 0.625,
    "agreement": 0.75,
    "vote_share": 0.875,
    "length": 7.5,
    "abstained": 0.125,
    "seconds_rollout": 0.25,
    "seconds_exchange": 0.01,
    "seconds_update": 0.5,
}


def a_config(tmp_path):
    return Config.model_validate(
        {
            "run": {"dir": tmp_path, "steps": 40},
            "agents": {"ann": {"model": "a"}, "bob": {"model": "b"}},
            "data": {"train": {"scenes": {}}},
        }
    )


def shown(table, width=60):
    output = io.StringIO()
    Console(file=output, width=width).print(table)
    return output.getvalue()


def cells_of(text):
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]


def progressed():
    ann = AgentProgress(phase="update")
    ann.add({"kind": "eval", "step": 0, "accuracy": 0.5}, now=0.0)
    for step, now in ((1, 10.0), (2, 11.0), (3, 14.0)):
        ann.add({"kind": "train", "step": step, **TRAIN, "agreement": 0.25 * step}, now)
    return {"ann": ann, "bob": AgentProgress()}


def test_the_table_has_a_row_an_agent_with_its_newest_numbers_and_their_course():
    text = shown(as_table("runs/x", progressed(), steps=33, width=140), width=140)
    assert cells_of(text) == [
        ["ann", "3/33", "update", "▅ 50.0%", "▃▅▇ 0.75", "0.62", "0.88", "8", "12.5%", "2.00", "1:00"],
        ["bob", "0/33", "starting", "-", "-", "-", "-", "-", "-", "-", "-"],
    ]
    assert "held-out" in text and "agreement" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_narrow_terminal_loses_whole_columns_and_breaks_no_line(width):
    text = shown(as_table("runs/x", progressed(), steps=33, width=width), width=width)
    assert [row[0] for row in cells_of(text)] == ["ann", "bob"]
    assert "held-out" in text and "…" not in text
    assert ("1:00" in text) == (width > 40)


def test_a_line_tells_the_seconds_of_all_phases():
    record = {"kind": "train", "step": 3, **TRAIN, "seconds_grading": 1.0, "seconds_waiting": 9.0}
    assert as_line("ann", record, 40).endswith(", 1.76 s")


def test_the_last_alarm_of_each_agent_stays_under_the_table():
    progress = progressed()
    for step in (1, 2):
        progress["ann"].add(
            {"kind": "alarm", "step": step, "what": "few [answers]", "advice": "mend"}, now=0.0
        )
    text = shown(as_table("runs/x", progress, steps=33, width=100), width=100)
    assert "alarm of ann at step 2: few [answers]; mend" in text and "step 1" not in text


def test_sparks_show_the_whole_course_on_one_scale():
    assert sparks([]).strip() == ""
    assert sparks([0.0, 0.5, 1.0]).strip() == "▁▅█"
    long = sparks([i / 1000 for i in range(1000)])
    assert len(long) == 12 and list(long) == sorted(long) and long[0] == "▁" and long[-1] == "█"


def test_the_phase_is_what_the_agent_wrote_last(tmp_path):
    config = a_config(tmp_path)
    output = io.StringIO()
    console = Console(file=output, width=140, force_terminal=True)
    with LiveView(config, ["bob"], console=console) as view:
        RunFolder.of(config).phase("bob").parent.mkdir(parents=True)
        RunFolder.of(config).phase("bob").write_text("7 exchange")
        view.update()
        assert "exchange" in output.getvalue()


def test_without_a_terminal_evaluations_and_now_and_then_a_step_are_plain_lines(tmp_path):
    config = a_config(tmp_path)
    output = io.StringIO()
    console = Console(file=output, width=40)
    logs = {name: MetricsLog(RunFolder.of(config).metrics(name)) for name in config.agents}
    with LiveView(config, list(config.agents), console=console) as view:
        logs["ann"].write("eval", 0, accuracy=0.5, avg=0.25, samples=8)
        logs["bob"].write("train", 1, **TRAIN)
        view.update()
        logs["bob"].write("train", 2, **TRAIN)
    assert output.getvalue().splitlines() == [
        "ann: step 0/40: held-out accuracy 50.0%, avg@8 25.0%",
        "bob: step 1/40: reward 0.625, agreement 0.750, vote_share 0.875, 0.76 s",
    ]


def test_on_a_terminal_the_last_table_stays(tmp_path):
    config = a_config(tmp_path)
    output = io.StringIO()
    console = Console(file=output, width=140, force_terminal=True)
    with LiveView(config, ["bob"], console=console) as view:
        MetricsLog(RunFolder.of(config).metrics("bob")).write("train", 40, **TRAIN)
        view.say("saving")
    assert "40/40" in output.getvalue().split("saving")[1]


def test_a_resumed_run_does_not_tell_again_what_was_told_before(tmp_path):
    config = a_config(tmp_path)
    before = MetricsLog(RunFolder.of(config).metrics("ann"))
    for step in (0, 10, 20):
        before.write("eval", step, accuracy=0.5)
    output = io.StringIO()
    with LiveView(config, ["ann"], 10, Console(file=output)) as view:
        view.update()
        resumed = MetricsLog(RunFolder.of(config).metrics("ann"), resume_step=10)
        resumed.write("eval", 20, accuracy=0.75)
    assert output.getvalue().splitlines() == ["ann: step 20/40: held-out accuracy 75.0%"]


@pytest.mark.parametrize("terminal", [False, True])
def test_an_alarm_is_told_and_does_not_hide_the_step(tmp_path, terminal):
    config = a_config(tmp_path)
    log, output = MetricsLog(RunFolder.of(config).metrics("ann")), io.StringIO()
    console = Console(file=output, width=200, force_terminal=terminal)
    with LiveView(config, ["ann"], console=console) as view:
        log.write("train", 3, **TRAIN)
        log.write("alarm", 3, name="alike", what="all [agree]", advice="stop", collapse=False)
        view.update()
    assert "ann: alarm at step 3: all [agree]; stop" in output.getvalue()
    before, _, after = output.getvalue().partition("ann: alarm at step 3")
    assert ("0.62" in after) if terminal else ("0.625" in before)
