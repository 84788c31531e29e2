"""The client of OpenAI-compatible servers, against a real one on the loopback."""

from __future__ import annotations

import base64
import io
import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from PIL import Image

from mmcorl.agents import endpoint
from mmcorl.agents.endpoint import Endpoint
from mmcorl.config import AgentConfig, ImagesConfig, PromptConfig
from mmcorl.errors import MmcorlError
from mmcorl.problems import Problem

SUM = Problem("sum", "What is 2 + 2?")


@contextmanager
def serving(*replies, choices=None):
    """A server that gives these replies (a status or a body), then well-formed ones of `n` or `choices` choices."""
    requests, queue, lock = [], list(replies), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                requests.append((self.path, dict(self.headers), body))
                reply = queue.pop(0) if queue else 200
            status, content = (reply, "busy") if isinstance(reply, int) else (200, reply)
            if content == "busy" and status == 200:
                rows = [
                    {
                        "message": {"content": f"<answer>{body.get('seed', 'greedy')}-{i}</answer>"},
                        "finish_reason": "stop",
                    }
                    for i in range(choices or body.get("n", 1))
                ]
                content = json.dumps({"choices": rows})
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"http://{self.headers['Host']}/elsewhere")
            self.end_headers()
            self.wfile.write(content.encode())

        def do_GET(self):
            requests.append((self.path, dict(self.headers), None))
            self.send_response(404)
            self.end_headers()

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def judge(url, prompt=PromptConfig(instruction="Answer."), images=ImagesConfig(), **settings):
    agent = AgentConfig(model="big-model", frozen=True, endpoint=url, **settings)
    return Endpoint.load("judge", agent, prompt, images)


def ask(agent, problems=(SUM,), samples=3, key=("k",)):
    return agent.rollout(problems, samples=samples, max_tokens=64, noise_key=key, temperature=0.7)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(endpoint, "_PAUSES", (0.0, 0.0))


def test_the_request_and_what_becomes_of_the_reply():
    with serving() as (url, requests):
        [group] = ask(judge(f"{url}/"))
    [(path, headers, body)] = requests
    assert path == "/v1/chat/completions" and "Authorization" not in headers
    assert body["messages"] == [{"role": "user", "content": "What is 2 + 2?\nAnswer."}]
    assert {k: body[k] for k in ("model", "n", "max_tokens", "temperature")} == {
        "model": "big-model", "n": 3, "max_tokens": 64, "temperature": 0.7,
    }  # fmt: skip
    assert [c.text for c in group.completions] == [f"<answer>{body['seed']}-{i}</answer>" for i in range(3)]
    assert all(c.finished and c.token_ids == () for c in group.completions)


def test_images_go_along_as_they_are_and_where_they_belong():
    picture = Image.effect_noise((80, 80), 60).convert("RGB")
    problem = Problem("p", "Left <image> or right?", (picture,))
    with serving() as (url, requests):
        ask(judge(url, PromptConfig(system="Be brief.", instruction="")), [problem])
    system, user = requests[0][2]["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    before, image, after = user["content"]
    assert (before["text"], after["text"]) == ("Left ", " or right?")
    kind, data = image["image_url"]["url"].split(",")
    assert kind == "data:image/png;base64"
    sent = Image.open(io.BytesIO(base64.b64decode(data)))
    assert sent.tobytes() == picture.tobytes()


def test_images_are_sent_in_the_size_that_other_agents_are_shown():
    problem = Problem("p", "Which way?", (Image.new("RGB", (400, 100)),))
    with serving() as (url, requests):
        ask(judge(url, images=ImagesConfig(max_long_side=80, min_pixels=1)), [problem])
    image, _ = requests[0][2]["messages"][0]["content"]
    sent = Image.open(io.BytesIO(base64.b64decode(image["image_url"]["url"].split(",")[1])))
    assert sent.size == (80, 20)


def test_a_server_that_gives_one_at_a_time_is_asked_again_with_another_seed():
    with serving(choices=1) as (url, requests):
        [group] = ask(judge(url))
    seeds = [body["seed"] for _, _, body in requests]
    assert len(group.completions) == len(set(seeds)) == 3
    assert [body.get("n") for _, _, body in requests] == [3, 2, None]


def test_seeds_depend_on_the_key_and_the_problem():
    with serving() as (url, requests):
        agent, other = judge(url), Problem("other", "?")
        ask(agent, [SUM])
        ask(agent, [SUM])
        ask(agent, [SUM], key=("l",))
        ask(agent, [other])
    seeds = [body["seed"] for _, _, body in requests]
    assert seeds[0] == seeds[1] and len(set(seeds)) == 3


def test_without_noise_one_greedy_completion():
    with serving() as (url, requests):
        [group] = ask(judge(url), samples=5, key=None)
    [(_, _, body)] = requests
    assert len(group.completions) == 1 and body["temperature"] == 0 and "seed" not in body


def test_groups_come_in_the_order_of_the_problems():
    problems = [Problem(str(i), f"Question {i}") for i in range(40)]
    with serving() as (url, _):
        assert [group.problem for group in ask(judge(url), problems)] == problems


def test_the_key_comes_from_the_named_variable_and_shows_nowhere(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "s3cret")
    with serving() as (url, requests):
        agent = judge(url, api_key_env="JUDGE_KEY")
        ask(agent)
        assert requests[0][1]["Authorization"] == "Bearer s3cret"
        assert "s3cret" not in repr(agent)
        monkeypatch.delenv("JUDGE_KEY")
        with pytest.raises(MmcorlError, match=r"agents\.judge\.api_key_env=JUDGE_KEY"):
            judge(url, api_key_env="JUDGE_KEY")


def test_the_key_is_not_handed_on_by_a_redirect(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "s3cret")
    with serving(302) as (url, requests), pytest.raises(MmcorlError, match="404"):
        ask(judge(url, api_key_env="JUDGE_KEY"))
    assert [path for path, *_ in requests] == ["/v1/chat/completions", "/elsewhere"]
    assert "Authorization" not in requests[1][1]


@pytest.mark.parametrize("trouble", [(429,), (503, 500)])
def test_what_may_pass_is_tried_again(trouble):
    with serving(*trouble) as (url, requests):
        [group] = ask(judge(url))
    assert len(group.completions) == 3 and len(requests) == len(trouble) + 1


def test_what_does_not_pass_is_given_up():
    with serving(*[503] * 9) as (url, requests), pytest.raises(MmcorlError, match="after 3 tries: HTTP 503"):
        ask(judge(url))
    assert len(requests) == 3


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_told_at_once(status):
    with serving(status) as (url, requests), pytest.raises(MmcorlError, match=f"HTTP {status}: busy"):
        ask(judge(url))
    assert len(requests) == 1


@pytest.mark.parametrize("reply", ["no json", "[]", '{"choices": [{}]}', '{"choices": []}', '{"choices": 3}'])
def test_a_reply_that_is_none_is_refused(reply):
    with serving(reply) as (url, _), pytest.raises(MmcorlError, match=r"agents\.judge\.endpoint"):
        ask(judge(url))


def test_silence_and_cut_off_answers():
    reply = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    with serving(json.dumps(reply)) as (url, _):
        [group] = ask(judge(url), samples=1)
    assert group.completions[0].text == "" and not group.completions[0].finished


def test_nobody_there():
    with serving() as (url, _):
        pass
    with pytest.raises(MmcorlError, match="after 3 tries"):
        ask(judge(url))


def test_a_reply_that_breaks_off_is_asked_for_again():
    server = socket.create_server(("127.0.0.1", 0))

    def answer():
        for reply in (b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", b""):
            connection, _ = server.accept()
            connection.recv(65536)
            connection.sendall(reply)
            connection.close()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    with server, pytest.raises(MmcorlError, match="does not answer after 3 tries"):
        ask(judge(f"http://127.0.0.1:{server.getsockname()[1]}/v1"))
    thread.join()


def test_half_a_character_becomes_a_question_mark():
    reply = json.dumps({"choices": [{"message": {"content": "4 \ud83d"}}]})
    with serving(reply) as (url, _):
        [group] = ask(judge(url), samples=1)
    assert group.completions[0].text == "4 ?"


@pytest.mark.parametrize("content", [5, [{"type": "text", "text": "2"}]])
def test_content_is_text(content):
    reply = json.dumps({"choices": [{"message": {"content": content}}]})
    with serving(reply) as (url, _), pytest.raises(MmcorlError, match="gives no chat completion"):
        ask(judge(url))


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "file:///etc", "http://", "http://[::1", "http://a b/", ""]
)
def test_what_is_no_url_is_refused_before_the_run(url):
    with pytest.raises(MmcorlError, match="is no URL; write https://host/v1"):
        judge(url)


def test_a_key_with_a_line_end_is_refused_and_not_shown(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "secret\n")
    with pytest.raises(MmcorlError, match="JUDGE_KEY: this environment variable holds line ends") as caught:
        judge("http://localhost/v1", api_key_env="JUDGE_KEY")
    assert "secret" not in str(caught.value)
