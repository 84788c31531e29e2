import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mmcorl.cohort.sealed import Forged, Sealed
from mmcorl.cohort.store import open_store
from mmcorl.config import Config
from mmcorl.errors import CohortMismatch, MmcorlError, PeerLost
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
    left = Sealed(open_store(url, is_host=True)[0], b"", "launchers")
    left.set("attempt", "earlier")
    left.set("earlier/brings/ann", "{}")

    def wait_for_guest():
        while not left.check(["earlier/brings/bob"]):
            time.sleep(0.05)

    first, second = together(launcher(config, "ann", url, wait_for_guest), launcher(config, "bob", url))
    assert first == second and first[0] != "earlier"


def test_a_host_that_leaves_while_others_gather_is_named(tmp_path):
    config = a_config(tmp_path, agents=("ann", "bob", "cid"))
    hosted, url = open_store("tcp://127.0.0.1:0", is_host=True)
    Sealed(hosted, b"", "launchers").set("attempt", "now")
    with ThreadPoolExecutor(1) as pool:
        guest = pool.submit(launcher(config, "bob", url))
        while not hosted.check(["launchers/now/brings/bob"]):
            time.sleep(0.05)
        del hosted  # ends the store
        error = guest.exception(timeout=30)
    assert isinstance(error, PeerLost)
    assert "ann, which hosts the cohort's store, has left" in str(error)


# The secret


def with_secret(config, path, secret="0123456789abcdef" * 2):
    path.write_text(secret)
    path.chmod(0o600)
    cohort = config.cohort.model_copy(update={"secret_file": path})
    return config.model_copy(update={"cohort": cohort})


def test_agents_on_several_machines_need_a_secret(tmp_path):
    config = a_config(tmp_path)
    for url in ("tcp://192.0.2.1:29500", "tcp://host1:29500"):
        with (
            pytest.raises(MmcorlError, match=r"cohort\.secret_file is not set; make one with .*openssl rand"),
            meet(config, ["bob"], url, resume=False),
        ):
            pass


def test_launchers_with_one_secret_meet_and_tell_their_agents(tmp_path):
    url, config = f"file://{tmp_path}/store", with_secret(a_config(tmp_path), tmp_path / "secret")

    def secret(name):
        with meet(config, [name], url, resume=False) as meeting:
            return meeting.secret

    assert together(lambda: secret("ann"), lambda: secret("bob")) == [b"0123456789abcdef" * 2] * 2


def test_a_cohort_on_one_machine_has_a_secret_of_its_own_at_every_start(tmp_path):
    found = []
    for _ in range(2):
        with meet(a_config(tmp_path), ["ann", "bob"], "tcp://127.0.0.1:0", resume=False) as meeting:
            found.append(meeting.secret)
    assert len(set(found)) == 2 and len(found[0]) == 32


def test_a_launcher_with_another_secret_is_refused(tmp_path):
    url, config = f"file://{tmp_path}/store", with_secret(a_config(tmp_path), tmp_path / "secret")
    host = Sealed(open_store(url, is_host=True)[0], b"f" * 32, "launchers")
    host.set("attempt", "now")
    with pytest.raises(Forged, match=r"launchers/attempt in the cohort's store .* same cohort\.secret_file"):
        launcher(config, "bob", url)()


def test_a_recorded_meeting_leads_nobody_astray(tmp_path):
    """A stranger puts up again what was said at an earlier start, seals and all."""
    url, config = f"file://{tmp_path}/store", with_secret(a_config(tmp_path), tmp_path / "secret")
    recorded = Sealed(open_store(url, is_host=True)[0], b"0123456789abcdef" * 2, "launchers")
    recorded.set("attempt", "earlier")
    for name in config.agents:
        recorded.set(f"earlier/brings/{name}", json.dumps({"shared": {}, "steps": [], "word": f"{name}'s"}))
    recorded.set("earlier/heard/all", json.dumps(["ann's", "bob's"]))
    with pytest.raises(CohortMismatch, match="repeats an earlier start of the run, of which bob was no part"):
        launcher(config, "bob", url)()
