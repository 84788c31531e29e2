"""Shows the report while a run goes on: a server for this machine alone, and a page that renews itself."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from mmcorl.analysis.report.page import as_html
from mmcorl.analysis.report.reading import read_report
from mmcorl.analysis.report.runs import find_runs
from mmcorl.errors import MmcorlError

HOST = "127.0.0.1"

_POLL_SECONDS = 5.0
_REST = 5.0  # times what the last page took: the machine is there to train


class LivePage:
    """The report's page, made anew when a run has written something and the page is asked for.

    Between two pages lie at least `poll_seconds`, and `rest` times as long as the last one took to make.
    """

    def __init__(
        self, paths: Sequence[Path], poll_seconds: float = _POLL_SECONDS, rest: float = _REST
    ) -> None:
        self._paths = paths
        self._poll_seconds, self._rest = poll_seconds, rest
        self._lock = threading.Lock()
        self._version = ""
        self._html = ""
        self._not_before = 0.0

    def html(self) -> str:
        """The page as it is now. Raises MmcorlError as `read_report` does."""
        with self._lock:
            version = self._files_version()
            if version != self._version and time.monotonic() >= self._not_before:
                start = time.monotonic()
                report = read_report(self._paths)
                took = time.monotonic() - start
                poll = max(self._poll_seconds, took * self._rest)
                self._html, self._version = as_html(report, poll, version), version
                self._not_before = time.monotonic() + poll
            return self._html

    def version(self) -> str:
        """The version that `html` would show: changes with all that a run writes."""
        return self._version if time.monotonic() < self._not_before else self._files_version()

    def _files_version(self) -> str:
        states = [
            file.stat()
            for run in find_runs(self._paths)
            for file in (
                run / "launches.jsonl",
                *sorted(run.glob("agents/*/*.jsonl")),
                *sorted(run.glob("agents/*/completions")),
            )
            if file.exists()
        ]
        return "-".join(f"{state.st_size:x}.{state.st_mtime_ns:x}" for state in states)


def serve(paths: Sequence[Path], port: int, say: Callable[[str], None]) -> None:
    """Serve the report of these runs on the loopback address until interrupted. Port 0 takes a free one.

    Raises MmcorlError for a report that cannot be made and for a port that is taken.
    """
    page = LivePage(paths)
    page.html()  # a mistake is told now, not to the browser
    with make_server(page, port) as server:
        say(f"http://{HOST}:{server.server_port}/ shows the report and renews it; Ctrl-C ends it")
        server.serve_forever()


def make_server(page: LivePage, port: int) -> ThreadingHTTPServer:
    """A server of `/`, the page, and `/version`, which the page asks for."""

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            with suppress(ConnectionError):  # a browser that leaves before its answer is no error
                super().handle()

        def do_GET(self) -> None:
            # A foreign page whose name was made to resolve to this machine must not read the report.
            if not _is_local(self.headers.get("Host", "")):
                self.send_error(HTTPStatus.FORBIDDEN, "only for this machine")
                return
            try:
                match self.path:
                    case "/":
                        self._answer(page.html(), "text/html")
                    case "/version":
                        self._answer(page.version(), "text/plain")
                    case _:
                        self.send_error(HTTPStatus.NOT_FOUND)
            except MmcorlError as error:
                self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, explain=str(error))

        def _answer(self, text: str, kind: str) -> None:
            body = text.encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """A page that asks every few seconds would fill the terminal."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise MmcorlError(
            f"--port={port} cannot be served ({error.strerror}); choose another, or 0 for a free one"
        ) from None


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] or host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
