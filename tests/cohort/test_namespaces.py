"""Agents in two network namespaces, over a link that is cut. It needs root, and skips where namespaces cannot be made.

All traffic stays between the two namespaces, whose names carry this process's id.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

TABLE = Path(__file__).parent / "table.py"
HOST = "10.213.71.1"


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


class Link:
    """Two namespaces, `a` with address `HOST` and `b`, and the cable between them."""

    def __init__(self):
        self.names = {end: f"mmcorl{os.getpid()}{end}" for end in "ab"}

    def lay(self):
        """Why it could not be laid; an empty text when it was."""
        a, b = self.names.values()
        steps = [["netns", "add", a], ["netns", "add", b]]
        steps += [["-n", a, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", b]]
        for name, address in ((a, HOST), (b, "10.213.71.2")):
            steps += [["-n", name, "addr", "add", f"{address}/24", "dev", "cable"]]
            steps += [["-n", name, "link", "set", device, "up"] for device in ("lo", "cable")]
        for step in steps:
            if (done := ip(*step)).returncode:
                return f"ip {' '.join(step)}: {done.stderr.strip()}"
        return ""

    def remove(self):
        for name in self.names.values():
            ip("netns", "del", name)

    def cut(self):
        assert ip("-n", self.names["b"], "link", "set", "cable", "down").returncode == 0

    def mend(self):
        assert ip("-n", self.names["b"], "link", "set", "cable", "up").returncode == 0

    def start(self, end, *arguments):
        command = ["ip", "netns", "exec", self.names[end], sys.executable, str(TABLE), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.fixture
def link():
    if shutil.which("ip") is None:
        pytest.skip("needs `ip` (iproute2)")
    link = Link()
    try:
        if why := link.lay():
            pytest.skip(f"network namespaces cannot be made here: {why}")
        yield link
    finally:
        link.remove()


@pytest.fixture
def agents(link):
    """`agents(steps, dead_after)` starts a, which hosts the store, and b; they end with the test."""
    started = []

    def start(steps, dead_after):
        url = f"tcp://{HOST}:29500"
        for end in "ab":
            started.append(link.start(end, "pair", url, end, str(steps), str(dead_after)))
        return started

    yield start
    for process in started:
        process.kill()
        process.communicate()


def line(process):
    return process.stdout.readline().strip()


def rest(process):
    return process.communicate(timeout=90)[0].splitlines()


def test_a_link_that_is_cut_for_ten_seconds_is_survived(link, agents):
    a, b = agents(steps=40, dead_after=20)
    assert line(a).startswith("step 1 ") and line(b).startswith("step 1 ")
    link.cut()
    time.sleep(10)
    link.mend()
    of_a, of_b = rest(a), rest(b)
    assert of_a[-1] == of_b[-1] == "left"
    # Every step has the ballots that both would have sent without the cut.
    assert of_a[:-1] == of_b[:-1] == [f"step {step} a{step} b{step}" for step in range(2, 41)]
    assert (a.returncode, b.returncode) == (0, 0)


def test_a_link_that_is_cut_for_good_is_reported_by_name(link, agents):
    a, b = agents(steps=10_000, dead_after=4)
    assert line(a).startswith("step 1 ") and line(b).startswith("step 1 ")
    link.cut()
    of_a, of_b = rest(a), rest(b)
    assert of_a[-1].startswith("lost: agent b has given no sign of life for")
    assert of_b[-1].startswith("lost: the cohort's store does not answer")
    assert "a tcp store is where agent a was started" in of_b[-1]
    assert (a.returncode, b.returncode) == (3, 3)


def test_the_store_is_offered_at_the_given_address_alone(link):
    other = "10.213.71.3"
    assert ip("-n", link.names["a"], "addr", "add", f"{other}/24", "dev", "cable").returncode == 0
    host = link.start("a", "pair", f"tcp://{HOST}:29500", "a", "1", "20")
    guest = link.start("b", "pair", f"tcp://{HOST}:29500", "b", "1", "20")
    try:
        assert line(guest).startswith("step 1 ")
        knock = f"import socket; socket.create_connection(('{other}', 29500), timeout=5)"
        knocking = subprocess.run(
            ["ip", "netns", "exec", link.names["b"], sys.executable, "-c", knock],
            capture_output=True,
            text=True,
        )
        assert "ConnectionRefusedError" in knocking.stderr
    finally:
        for process in (host, guest):
            process.kill()
            process.communicate()
