import socket
import struct
import threading
import time
from http.client import HTTPConnection

import pytest

from mmcorl.analysis.report.serve import HOST, LivePage, make_server
from mmcorl.errors import MmcorlError


@pytest.fixture
def ask():
    """`ask(page, path, host=...)`: status and text of the answer of a server of that page."""
    servers = []

    def request(page, path, host=HOST):
        server = make_server(page, 0)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        connection = HTTPConnection(HOST, server.server_port, timeout=60)
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    yield request
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_page_and_its_version_are_served_to_this_machine(make_run, ask):
    page = LivePage([make_run()])
    status, text = ask(page, "/")
    assert status == 200 and "<h1>pair</h1>" in text and f'data-version="{page.version()}"' in text
    assert ask(page, "/version", host="localhost:8000") == (200, page.version())
    assert ask(page, "/../config.yaml")[0] == 404


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "127.0.0.1.example.org", ""])
def test_a_name_that_only_resolves_to_this_machine_is_refused(make_run, ask, host):
    status, text = ask(LivePage([make_run()]), "/", host=host)
    assert status == 403 and "pair" not in text


def test_a_page_is_made_anew_when_the_run_has_written_something(make_run):
    path = make_run(steps=2, code=None)
    page = LivePage([path], poll_seconds=0.0, rest=0.0)
    first, version = page.html(), page.version()
    assert page.html() is first, "nothing new, nothing done"
    with (path / "agents" / "ann" / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 3, "agreement": 1.0}\n')
    assert page.version() != version
    assert "Unfinished: 2 of 3" in first and "Complete: 3 of 3" in page.html()


def test_a_port_that_is_taken_is_named(make_run):
    page = LivePage([make_run()])
    with make_server(page, 0) as server, pytest.raises(MmcorlError, match=f"--port={server.server_port}"):
        make_server(page, server.server_port)


class Slow(LivePage):
    """A page that is made only when `browser_left` is set."""

    browser_left = threading.Event()

    def html(self):
        assert self.browser_left.wait(timeout=60)
        return "x" * 2**20


def test_a_browser_that_leaves_fills_no_terminal(make_run, capfd):
    with make_server(Slow([make_run()]), 0) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        before = set(threading.enumerate())
        with socket.create_connection((HOST, server.server_port)) as browser:
            browser.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # no goodbye
            browser.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            while not (answering := set(threading.enumerate()) - before):
                time.sleep(0.01)
        Slow.browser_left.set()
        for thread in answering:
            thread.join()
        server.shutdown()
        serving.join()
    assert capfd.readouterr().err == ""
