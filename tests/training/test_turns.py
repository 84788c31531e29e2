"""Agents that take turns never compute at the same time on one device, and a dead one keeps nobody waiting."""

from __future__ import annotations

import os
import threading
import time

from mmcorl.training.turns import Turns
from mmcorl.training.world import World
from tests.training.cohorts import cohort_config, train


def overlaps(folder, first, second):
    """The most holders there ever were at one time, of two that take turns on these devices."""
    inside, most, lock = 0, 0, threading.Lock()

    def work(devices):
        nonlocal inside, most
        for _ in range(5):
            with Turns(folder, devices, World()).taken():
                with lock:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.005)
                with lock:
                    inside -= 1

    threads = [threading.Thread(target=work, args=(devices,)) for devices in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    return most


def test_one_at_a_time_where_a_device_is_shared(tmp_path):
    assert overlaps(tmp_path, [0], [0]) == 1
    assert overlaps(tmp_path, [0, 1], [1, 0]) == 1  # taken in one order, so that neither waits for the other


def test_agents_of_different_devices_do_not_wait(tmp_path):
    both = threading.Barrier(2)

    def work(device):
        with Turns(tmp_path, [device], World()).taken():
            both.wait(timeout=20)

    threads = [threading.Thread(target=work, args=(device,)) for device in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert not both.broken


def test_the_turn_of_a_process_that_dies_ends(tmp_path):
    child = os.fork()
    if child == 0:
        with Turns(tmp_path, [0], World()).taken():
            os._exit(0)
    os.waitpid(child, 0)
    with Turns(tmp_path, [0], World()).taken():
        pass


def test_a_cohort_learns_the_same_in_turns(tmp_path):
    one = train(cohort_config(run={"dir": str(tmp_path)}), steps=2)
    (tmp_path / "run").mkdir()
    turns = train(cohort_config(run={"dir": str(tmp_path)}, cohort={"take_turns": True}), steps=2)
    assert (tmp_path / "run" / ".device-0.lock").exists()
    for agent in one:
        assert all((tensor == one[agent][1][key]).all() for key, tensor in turns[agent][1].items())
