import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mmcorl.cohort.store import open_store
from mmcorl.config import Config
from mmcorl.errors import CohortMismatch, PeerLost
from mmcorl.training.rendezvous import meet


def a_config(tmp_path, agents=("ann", "bob"), size=24, **run):
    return Config.model_validate(
        {
            "run": {"dir": tmp_path} | run,
            "agents": {name: {"model": "m"} for name in agents},
            "data": {"train": {"scenes": {"size": size}}},
        }
    )


def together(*plays) -> list[Any]:
    """Launchers on threads; what each returned or raised."""
    with ThreadPoolExecutor(len(plays)) as pool:
        futures = [pool.submit(play) for play in plays]
        return [future.exception() or future.result() for future in futures]


def launcher(config, name, url, before=lambda: None):
    def run():
        before()
        with meet(config, [name], url, resume=False) as meeting:
            meeting.part()
            return meeting.attempt, meeting.resume_step

    return run


def test_launchers_agree_on_the_attempt_and_leave_no_file(tmp_path):
    url, config = f"file://{tmp_path}/store", a_config(tmp_path)
    first, second = together(launcher(config, "ann", url), launcher(config, "bob", url))
    assert first == second and first[0] and first[1] is None
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("other", "setting"), [({"seed": 3}, "run.seed=3"), ({"size": 48}, "data.train.scenes.size=48")]
)
def test_launchers_with_different_settings_are_told_which(tmp_path, other, setting):
    url = f"file://{tmp_path}/store"
    errors = together(
        launcher(a_config(tmp_path), "ann", url), launcher(a_config(tmp_path, **other), "bob", url)
    )
    assert all(isinstance(error, CohortMismatch) and setting in str(error) for error in errors)
    assert "ann was started with" in str(errors[0]) and f"and bob with {setting}" in str(errors[0])


def test_what_a_killed_host_left_in_a_file_is_not_taken_for_a_living_one(tmp_path):
    url, config = f"file://{tmp_path}/store", a_config(tmp_path)
    left = open_store(url, is_host=True)[0]
    left.set("launchers/attempt", "earlier")
    left.set("launchers/earlier/brings/ann", "{}")

    def wait_for_guest():
        while not left.check(["launchers/earlier/brings/bob"]):
            time.sleep(0.05)

    first, second = together(launcher(config, "ann", url, wait_for_guest), launcher(config, "bob", url))
    assert first == second and first[0] != "earlier"


def test_a_host_that_leaves_while_others_gather_is_named(tmp_path):
    config = a_config(tmp_path, agents=("ann", "bob", "cid"))
    hosted, url = open_store("tcp://127.0.0.1:0", is_host=True)
    hosted.set("launchers/attempt", "now")
    with ThreadPoolExecutor(1) as pool:
        guest = pool.submit(launcher(config, "bob", url))
        while not hosted.check(["launchers/now/brings/bob"]):
            time.sleep(0.05)
        del hosted  # ends the store
        error = guest.exception(timeout=30)
    assert isinstance(error, PeerLost)
    assert "ann, which hosts the cohort's store, has left" in str(error)
