import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from torch.distributed import HashStore

from mmcorl.cohort.ballots import Ballot
from mmcorl.cohort.exchange import Exchange
from mmcorl.cohort.messages import LONGEST_TEXT
from mmcorl.cohort.sealed import Forged, Sealed
from mmcorl.cohort.store import open_store
from mmcorl.errors import CohortMismatch, PeerLost
from mmcorl.graders.answers import Answer

BALLOT = Ballot(3, ((Answer("math", "4"), 2),))


SECRET = b"of this cohort and nobody else's"


def seat(store, agent, agents="ab", run="r", attempt="1", dead_after=5.0, secret=SECRET):
    return Exchange(
        store, list(agents), agent, run=run, attempt=attempt, dead_after=dead_after, secret=secret
    )


def sealed(store, attempt="1", secret=SECRET):
    return Sealed(store, secret, f"mmcorl/{attempt}")


def together(*plays) -> list[Any]:
    """Run agents on threads; gives what each returned or raised."""
    with ThreadPoolExecutor(len(plays)) as pool:
        futures = [pool.submit(play) for play in plays]
        return [future.exception() or future.result() for future in futures]


def play(store, agent, steps=3, stop_at=None, **options):
    def run():
        with seat(store, agent, **options) as exchange:
            exchange.join("problems")
            step, messages = 0, {}
            for step in range(1, steps + 1):
                messages = exchange.gather(
                    step, ["p1", "p2"], [Ballot(step, ()), BALLOT], stop=step == stop_at
                )
                if any(message.stop for message in messages.values()):
                    break
            return step, messages

    return run


@pytest.fixture(params=["memory", "file", "tcp"])
def store(request, tmp_path):
    url = {"memory": f"memory://{tmp_path}", "file": f"file://{tmp_path}/store", "tcp": "tcp://127.0.0.1:0"}
    return open_store(url[request.param], is_host=True)


def opened(store):
    """The store as another process would open it."""
    return open_store(store[1], is_host=False)[0]


def test_ballots_of_every_agent_arrive_in_order(store):
    results = together(*(play(opened(store), agent, agents="abc") for agent in "cab"))
    assert all(result == results[0] for result in results)
    step, messages = results[0]
    assert (step, list(messages)) == (3, ["a", "b", "c"])
    assert messages["b"].ballots == (Ballot(3, ()), BALLOT)
    assert (messages["b"].agent, messages["b"].step, len(messages["b"].problems)) == ("b", 3, 2)


def test_nothing_read_stays_in_the_store(store):
    together(play(opened(store), "a", steps=8), play(opened(store), "b", steps=8))
    left = [key for key in store[0].list_keys() if "mmcorl" in key]
    assert sorted(left) == ["mmcorl/1/beat/a", "mmcorl/1/beat/b"]


def test_what_an_earlier_attempt_left_is_not_read(store):
    with seat(opened(store), "b") as earlier, pytest.raises(PeerLost):
        earlier.join("other problems", appear_within=0.0)  # posts, and nobody comes
    results = together(play(opened(store), "a", attempt="2"), play(opened(store), "b", attempt="2"))
    assert [result[0] for result in results] == [3, 3]


def test_one_agent_alone_needs_nobody():
    step, messages = play(HashStore(), "a", agents="a")()
    assert (step, list(messages)) == (3, ["a"])


def test_all_stop_after_the_step_in_which_one_says_so():
    store = HashStore()
    results = together(play(store, "a", steps=9, stop_at=4), play(store, "b", steps=9))
    assert [result[0] for result in results] == [4, 4]


def test_texts_of_every_agent_arrive_whole_and_long_ones_are_cut(store):
    def speak(agent):
        with seat(opened(store), agent, agents="abc") as exchange:
            exchange.join("problems")
            exchange.gather(1, ["p1", "p2"], [BALLOT, BALLOT])
            rows = [[f"{agent} ünd \n\x00", ""], ["y" * (LONGEST_TEXT + 9), "\ud7ff"]]
            first = exchange.gather_texts(1, "solutions", ["p1", "p2"], rows)
            second = exchange.gather_texts(1, "scores", ["p1", "p2"], [["1"], [agent]])
            return first, second

    results = together(*(lambda agent=agent: speak(agent) for agent in "cab"))
    assert all(result == results[0] for result in results)
    first, second = results[0]
    assert list(first) == ["a", "b", "c"] and first["b"].phase == "solutions"
    assert first["b"].texts == (("b ünd \n\x00", ""), ("y" * LONGEST_TEXT, "\ud7ff"))
    assert [texts.texts[1] for texts in second.values()] == [("a",), ("b",), ("c",)]


def test_megabytes_of_texts_arrive(store):
    rows = [[f"{i} {k} " + "w" * 20_000 for k in range(8)] for i in range(64)]

    def speak(agent):
        with seat(opened(store), agent) as exchange:
            return exchange.gather_texts(1, "solutions", [str(i) for i in range(64)], rows)

    for said in together(lambda: speak("a"), lambda: speak("b")):
        assert [list(row) for row in said["b"].texts] == rows


# Disagreements


def test_agents_of_different_phases_find_out():
    def speak(agent, phase):
        with seat(store, agent) as exchange:
            exchange.gather_texts(7, phase, ["p"], [["x"]])

    store = HashStore()
    for error in together(lambda: speak("a", "solutions"), lambda: speak("b", "scores")):
        assert isinstance(error, CohortMismatch)
        assert "disagree on the phase of step 7: solutions and scores" in str(error)


def test_an_agent_without_the_interaction_is_blamed():
    def vote():
        with seat(store, "b") as exchange:
            exchange.gather(1, ["p"], [BALLOT])

    def speak():
        with seat(store, "a") as exchange:
            exchange.gather_texts(1, "solutions", ["p"], [["x"]])

    store = HashStore()
    error, _ = together(speak, vote)
    assert isinstance(error, CohortMismatch)
    assert "agent b sent" in str(error) and "`interaction`" in str(error)


def test_an_agent_that_leaves_amid_the_phases_is_not_waited_for(store):
    def leaver():
        with seat(opened(store), "b", dead_after=2.0) as exchange:
            exchange.gather_texts(1, "solutions", ["p"], [["x"]])

    def speaker():
        with seat(store[0], "a", dead_after=2.0) as exchange:
            exchange.gather_texts(1, "solutions", ["p"], [["x"]])
            exchange.gather_texts(1, "evaluations", ["p"], [["x"]])

    lost, _ = together(speaker, leaver)
    assert isinstance(lost, PeerLost)
    assert str(lost) == "agent b has left the cohort; step 1, evaluations"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"run": "other"}, "agents a and b disagree on the run: r and other; set run.name alike"),
        ({"agents": "abc"}, "agents a and b disagree on the cohort: a, b and a, b, c"),
        ({"problems": "others"}, "agents a and b train on different problems"),
        ({"step": 8}, "agents a and b disagree on the step: 7 and 8"),
        ({"ids": ["p1"]}, "agents a and b disagree on the number of problems of step 7: 3 and 1"),
        ({"ids": ["p1", "p2", "p4"]}, "agents a and b disagree on problem 3 of step 7"),
        ({"ids": ["p1", "p3", "p2"]}, "agents a and b disagree on problem 2 of step 7"),
    ],
)
def test_disagreements_say_who_and_on_what(other, message):
    store = HashStore()

    def run(agent, run="r", agents="ab", problems="problems", step=7, ids=("p1", "p2", "p3")):
        with seat(store, agent, agents=agents, run=run) as exchange:
            exchange.join(problems)
            exchange.gather(step, ids, [BALLOT] * len(ids))

    first, second = together(lambda: run("a"), lambda: run("b", **other))
    assert isinstance(first, CohortMismatch)
    assert message in str(first)
    # b hears of it too; where it waits for a third agent, that a has left.
    assert isinstance(second, CohortMismatch | PeerLost)


def test_a_text_that_is_no_message_is_blamed_on_its_sender():
    store = HashStore()
    sealed(store).set("0/b/a", "cos\nsystem\n(S'ls'\ntR.")
    with (
        seat(store, "a") as exchange,
        pytest.raises(CohortMismatch, match="agent b sent what is not of this version"),
    ):
        exchange.join("problems")


# Strangers


def test_agents_with_different_secrets_do_not_train_together(store):
    other = b"another secret of 32 characters"
    results = together(play(opened(store), "a"), play(opened(store), "b", secret=other))
    assert all(isinstance(error, Forged | PeerLost) for error in results)
    assert any("does not bear the seal of this cohort's secret" in str(error) for error in results)


@pytest.mark.parametrize(
    ("recorded", "put_as"),
    [
        ("1/1/b/a", "2/1/b/a"),  # of an earlier start of the run
        ("2/0/b/a", "2/1/b/a"),  # of an earlier exchange
        ("2/1/a/b", "2/1/b/a"),  # what was said to another
        ("2/1/c/a", "2/1/b/a"),  # what another said
    ],
)
def test_a_replayed_message_is_refused_with_its_place(recorded, put_as):
    store, attempt = HashStore(), recorded[0]
    sealed(store, attempt).set(recorded[2:], "{}")
    with seat(store, "a", attempt="2", dead_after=2.0) as exchange:
        exchange._round = 1
        store.set(f"mmcorl/{put_as}", store.get(f"mmcorl/{recorded}").decode())
        with pytest.raises(Forged, match="mmcorl/2/1/b/a in the cohort's store"):
            exchange.gather(1, ["p"], [BALLOT])


def test_an_older_heartbeat_put_back_is_no_sign_of_life():
    store = HashStore()
    with seat(store, "b", dead_after=60.0):
        while not store.check(["mmcorl/1/beat/b"]):
            time.sleep(0.01)
        recorded = store.get("mmcorl/1/beat/b").decode()
        with seat(store, "a", dead_after=1.0) as exchange:
            sealed(store).set("beat/b", "[7, 0, null]")
            while not exchange._heartbeat._signs:
                time.sleep(0.01)
            store.set("mmcorl/1/beat/b", recorded)
            with pytest.raises(PeerLost, match="agent b has given no sign of life for"):
                exchange.join("problems")


def test_a_heartbeat_without_the_secret_is_reported():
    store = HashStore()
    sealed(store, secret=b"a stranger's").set("beat/b", "[0, 0, null]")
    with (
        seat(store, "a", dead_after=1.0) as exchange,
        pytest.raises(PeerLost, match="mmcorl/1/beat/b in the cohort's store does not bear the seal"),
    ):
        exchange.join("problems")


# Lost peers


def test_a_slow_peer_is_waited_for():
    store = HashStore()

    def slow():
        with seat(store, "b", dead_after=2.0) as exchange:
            exchange.join("problems")
            time.sleep(4)
            return 1, exchange.gather(1, ["p1", "p2"], [BALLOT, BALLOT])

    first, second = together(play(store, "a", steps=1, dead_after=2.0), slow)
    assert first == second


def test_an_agent_that_never_comes_is_named(store):
    with (
        seat(store[0], "a", agents="abc", dead_after=1.0) as exchange,
        seat(opened(store), "b", agents="abc", dead_after=1.0),
        pytest.raises(PeerLost, match="c did not appear within"),
    ):
        exchange.join("problems", appear_within=0.5)


def test_an_agent_that_left_is_not_waited_for(store):
    def leaver():
        with seat(opened(store), "b", dead_after=2.0) as exchange:
            exchange.join("problems")

    lost, _ = together(play(store[0], "a", dead_after=2.0), leaver)
    assert isinstance(lost, PeerLost)
    assert str(lost) == "agent b has left the cohort; step 1"


def test_why_an_agent_left_is_told_to_the_others():
    store = HashStore()

    def failing():
        with seat(store, "b", dead_after=2.0) as exchange:
            exchange.join("problems")
            raise OverflowError("the gradient is not finite\nand more")

    lost, _ = together(play(store, "a", dead_after=2.0), failing)
    assert str(lost) == "agent b has left the cohort (OverflowError: the gradient is not finite); step 1"


def test_a_foreign_heartbeat_ends_the_wait():
    store = HashStore()
    sealed(store).set("beat/b", "[1, 2]")
    with seat(store, "a", dead_after=1.0) as exchange, pytest.raises(PeerLost, match="not a heartbeat of b"):
        exchange.join("problems")


class Process:
    """`table.py` running; its lines come one by one."""

    def __init__(self, *arguments):
        command = [sys.executable, str(Path(__file__).parent / "table.py"), *arguments]
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def line(self):
        """The next one."""
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().strip()

    def lines(self):
        """All that are still to come, and the exit code."""
        rest = self.popen.communicate(timeout=60)[0]
        return rest.splitlines(), self.popen.returncode


@pytest.fixture
def start():
    """`start(url, agent, ...)`; the processes end with the test."""
    started = []

    def run(*arguments):
        started.append(Process(*arguments))
        return started[-1]

    yield run
    for process in started:
        process.popen.kill()
        process.popen.communicate()


@pytest.fixture
def host(start):
    """A process that hosts the store, and its address."""
    process = start("host")
    return process, process.line()


def test_processes_over_tcp_take_leave_in_order(start, host):
    agents = [start(host[1], name) for name in "ab"]
    for agent in agents:
        assert agent.lines() == (["step 1", "step 2", "step 3", "left"], 0)


def test_a_killed_peer_is_reported_by_name(start, host):
    a, b = start(host[1], "a"), start(host[1], "b", "2")
    assert b.line() == "step 1"
    b.popen.send_signal(signal.SIGKILL)
    lines, code = a.lines()
    # A clean exit code: threads that wait inside the store do not abort the interpreter.
    assert (lines[0], code) == ("step 1", 3)
    assert lines[1].startswith("lost: agent b has given no sign of life for")
    assert lines[1].endswith("; step 2")


@pytest.mark.parametrize(
    ("blow", "happened"), [(signal.SIGKILL, "is gone"), (signal.SIGSTOP, "does not answer")]
)
def test_a_lost_store_is_reported(start, host, blow, happened):
    _, b = start(host[1], "a", "2"), start(host[1], "b")
    assert b.line() == "step 1"
    host[0].popen.send_signal(blow)
    lines, code = b.lines()
    assert code == 3
    assert lines[0].startswith(f"lost: the cohort's store {happened}")
    assert "; a tcp store is where agent a was started)" in lines[0]


def test_a_killed_peer_is_reported_over_a_shared_file_system(start, tmp_path):
    peer = start(f"file://{tmp_path}/store", "b", "2")
    with seat(open_store(f"file://{tmp_path}/store", is_host=True)[0], "a", dead_after=2.0) as exchange:
        exchange.join("problems")
        exchange.gather(1, ["p"], [BALLOT])
        assert peer.line() == "step 1"
        peer.popen.send_signal(signal.SIGKILL)
        with pytest.raises(PeerLost, match="agent b has given no sign of life"):
            exchange.gather(2, ["p"], [BALLOT])


def test_ctrl_c_ends_a_wait(start, host):
    a, b = start(host[1], "a"), start(host[1], "b", "2")
    assert [a.line(), b.line()] == ["step 1", "step 1"]
    a.popen.send_signal(signal.SIGINT)
    assert a.lines() == ([], -signal.SIGINT)


def test_much_can_be_done_between_posting_and_collecting(store):
    """Who posts first is not waited for by who posts late, and only the time in `collect` counts as waiting."""
    waited = {}

    def run(agent, busy):
        with seat(opened(store), agent) as exchange:
            exchange.join("problems")
            exchange.waited = 0.0
            exchange.post(1, ["p"], [BALLOT])
            time.sleep(busy)
            messages = exchange.collect()
            waited[agent] = exchange.waited
            return messages

    first, second = together(lambda: run("a", 0.5), lambda: run("b", 0.0))
    assert first == second and list(first) == ["a", "b"]
    assert max(waited.values()) < 0.4  # b had a's ballots at once, and needed nothing else of it


def test_leaving_between_posting_and_collecting_ends_cleanly(store):
    def leave():
        with seat(opened(store), "a") as exchange:
            exchange.join("problems")
            exchange.post(1, ["p"], [BALLOT])
            raise RuntimeError("something else")

    def stay():
        with seat(opened(store), "b") as exchange:
            exchange.join("problems")
            exchange.gather(1, ["p"], [BALLOT])
            exchange.gather(2, ["p"], [BALLOT])

    left, stayed = together(leave, stay)
    assert isinstance(left, RuntimeError) and isinstance(stayed, PeerLost)
    assert "agent a has left the cohort (RuntimeError: something else)" in str(stayed)
