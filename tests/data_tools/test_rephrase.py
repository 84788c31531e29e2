from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mmcorl.config import DataConfig
from mmcorl.data.loading import load_problems
from mmcorl.data.twin import load_twin
from mmcorl.errors import MmcorlError

PROGRAM = Path(__file__).parents[2] / "data_tools" / "rephrase.py"
KEY = "a-very-secret-key"


def program() -> Any:
    spec = importlib.util.spec_from_file_location("rephrase", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Server(ThreadingHTTPServer):
    """A chat server on the loopback that rewords by a rule, and notes what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Chat)
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.fails_after: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Chat(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        self.server.keys.add(self.headers["Authorization"])
        if self.server.fails_after is not None and len(self.server.asked) > self.server.fails_after:
            self.send_response(401)
            self.end_headers()
            return
        question = body["messages"][-1]["content"].rpartition("Problem:\n")[2]
        wording = question if "keep me" in question else f"Please tell: {question}"
        wording = wording.replace("17", "18")
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": wording}}
        content = json.dumps({"choices": [choice] * body.get("n", 1)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield http
        http.shutdown()


def data(folder: Path) -> Path:
    rows = [{"id": f"p{n}", "question": f"How much is {n} + 1?"} for n in range(6)]
    rows += [
        {"id": "same", "question": "keep me"},
        {"id": "number", "question": "Is 17 prime?", "choices": ["yes", "no"]},
    ]
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def asked_ids(server: Server) -> int:
    return len({body["messages"][-1]["content"] for body in server.asked})


def test_a_twin_is_written_and_read(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("REPHRASE_TEST_KEY", KEY)
    path, out = data(tmp_path), tmp_path / "twin.jsonl"
    arguments = [
        str(path),
        str(out),
        "--endpoint",
        server.url,
        "--model",
        "m",
        "--api-key-env",
        "REPHRASE_TEST_KEY",
    ]
    assert program().main(arguments) == 0
    output = capsys.readouterr()
    assert "wrote 8 problems" in output.out
    assert "6  reworded" in output.out
    assert "1  kept: unchanged" in output.out
    assert "1  kept: numbers" in output.out
    assert server.keys == {f"Bearer {KEY}"}
    assert KEY not in output.out + output.err + out.read_text()

    problems = load_problems(DataConfig(path=str(path))).problems
    twins = load_twin(problems, out)
    assert [twin.id for twin in twins] == [problem.id for problem in problems]
    assert twins[2].question == "Please tell: How much is 2 + 1?"
    assert twins[6] == problems[6]
    assert twins[7] == problems[7]
    assert program().main(arguments) == 0  # nothing is left to ask
    assert asked_ids(server) == 8


def test_it_goes_on_where_it_was_stopped(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, out = data(tmp_path), tmp_path / "twin.jsonl"
    arguments = [
        str(path),
        str(out),
        "--endpoint",
        server.url,
        "--model",
        "m",
        "--batch",
        "2",
        "--tries",
        "1",
    ]
    server.fails_after = 4
    assert program().main(arguments) == 2
    lines = out.read_text().splitlines()
    assert len(lines) == 4
    out.write_text("\n".join(lines) + '\n{"id": "p4", "que')  # killed while it wrote
    server.fails_after = None
    server.asked.clear()
    assert program().main(arguments) == 0
    assert asked_ids(server) == 4
    assert out.read_text().splitlines()[:4] == lines
    assert "6  reworded" in capsys.readouterr().out


def test_a_twin_of_other_problems_is_not_gone_on_with(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path, out = data(tmp_path), tmp_path / "twin.jsonl"
    arguments = [str(path), str(out), "--endpoint", server.url, "--model", "m"]
    assert program().main(arguments) == 0
    path.write_text(path.read_text().replace("How much is 3", "What is 3"))
    capsys.readouterr()
    assert program().main(arguments) == 2
    assert "is a twin of other problems (id 'p3' differs)" in capsys.readouterr().err
    with pytest.raises(MmcorlError, match="another wording of 1 of 8 problems, such as 'p3'"):
        load_twin(load_problems(DataConfig(path=str(path))).problems, out)


def test_a_local_model(
    tiny_folder: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path, out = data(tmp_path), tmp_path / "twin.jsonl"
    arguments = [
        str(path),
        str(out),
        "--model",
        str(tiny_folder("qwen2")),
        "--limit",
        "2",
        "--max-tokens",
        "4",
    ]
    assert program().main(arguments) == 0
    assert "wrote 2 problems" in capsys.readouterr().out
    problems = load_problems(DataConfig(path=str(path), limit=2)).problems
    assert load_twin(problems, out) == problems  # a random model rewords nothing


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = str(data(tmp_path))
    out = str(tmp_path / "twin.jsonl")
    assert program().main([str(tmp_path / "none"), out, "--model", "m"]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert program().main([path, out, "--model", "m", "--batch", "0"]) == 2
    assert "--batch=0 must be at least 1" in capsys.readouterr().err
    assert (
        program().main(
            [path, out, "--model", "m", "--endpoint", "http://127.0.0.1:9/v1", "--api-key-env", "NO_SUCH_KEY"]
        )
        == 2
    )
    assert "NO_SUCH_KEY" in capsys.readouterr().err
    for content in ("no twin\n", "[]\n", '{"id": "p0"}\n', "a file of one line"):
        (tmp_path / "twin.jsonl").write_text(content)
        assert program().main([path, out, "--model", "m", "--endpoint", "http://127.0.0.1:9/v1"]) == 2
        assert "is no twin" in capsys.readouterr().err
        assert (tmp_path / "twin.jsonl").read_text() == content
    below_a_file = str(tmp_path / "twin.jsonl" / "x")
    assert program().main([path, below_a_file, "--model", "m", "--endpoint", "http://127.0.0.1:9/v1"]) == 2
    assert "another OUT" in capsys.readouterr().err
