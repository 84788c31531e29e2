from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image

from mmcorl.data import web
from mmcorl.data.bad_rows import BadRow
from mmcorl.data.rows import Source, read_row


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "PNG")
    return buffer.getvalue()


class Pictures(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/a.png" else 404)
        self.end_headers()
        self.wfile.write(picture() if self.path == "/a.png" else b"none")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pictures) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_urls_are_fetched_when_asked_for(server: str):
    row = {"question": "q", "images": [f"{server}/a.png"]}
    problem, _ = read_row(row, 0, Source(None, fetch_urls=True))
    assert problem.images == (picture(),)
    with pytest.raises(BadRow, match=r"is on the web; data\.train\.fetch_urls=true fetches it") as caught:
        read_row(row, 0, Source(None))
    assert caught.value.reason == "image is a URL"
    with pytest.raises(BadRow, match="is on the web; --fetch-urls fetches it"):
        read_row(row, 0, Source(None, prefix="--"))


def test_what_cannot_be_fetched(server: str, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BadRow, match=r"none\.png cannot be fetched \(HTTP Error 404"):
        web.fetch(f"{server}/none.png")
    with pytest.raises(BadRow, match="cannot be fetched"):
        web.fetch("http://127.0.0.1:9/a.png")
    with pytest.raises(BadRow, match="cannot be fetched"):
        web.fetch("http://[broken")
    monkeypatch.setattr(web, "MOST_BYTES", 10)
    with pytest.raises(BadRow, match="has more than 10 bytes"):
        web.fetch(f"{server}/a.png")
