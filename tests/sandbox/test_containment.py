"""Each way out of the sandbox, tried. Every program is followed by an innocent one, which has to be unharmed."""

import os
import socket
import threading
from pathlib import Path

import pytest

from mmcorl.sandbox import Limits, Outcome, Program, Sandbox

LIMITS = Limits(case_seconds=1.0, program_seconds=4.0, memory_bytes=512 << 20, output_bytes=100_000)


@pytest.fixture(scope="module")
def sandbox(walled_machine):
    with Sandbox(LIMITS, workers=1) as sandbox:
        yield sandbox


def outcome(sandbox: Sandbox, body: str) -> Outcome:
    """How `f()` with that body ends, once it is seen that the worker goes on as if nothing had been."""
    lines = "\n    ".join(body.splitlines())
    worker = sandbox.run([Program("import os", ("os.getppid()",))])
    [[result]] = sandbox.run([Program(f"def f():\n    {lines}", ("f()",))])
    assert sandbox.run([Program("import os", ("os.getppid()",))]) == worker
    return result


def refused(result: Outcome) -> bool:
    return result.status == "error" and result.value.startswith("PermissionError")


def test_an_endless_loop_is_ended(sandbox):
    assert outcome(sandbox, "while True: pass") == Outcome("killed", "one case took more than 1 s")


def test_an_endless_loop_that_catches_everything_is_ended(sandbox):
    body = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
    assert outcome(sandbox, body).status == "killed"


def test_sleeping_is_ended(sandbox):
    assert outcome(sandbox, "import time; time.sleep(60)").status == "killed"


@pytest.mark.parametrize(
    "start",
    [
        "os.fork()",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.execv('/bin/true', ['true'])",
        "os.system('true') == 0 or os.fork()",
    ],
)
def test_no_process_is_started(sandbox, start):
    assert refused(outcome(sandbox, f"import os; {start}"))


def test_a_fork_bomb_does_not_go_off(sandbox):
    assert refused(outcome(sandbox, "import os\nwhile True: os.fork()"))


def test_threads_are_bounded(sandbox):
    body = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,)).start()"
    assert outcome(sandbox, body).status == "error"  # each stack takes its share of the memory
    small = f"import threading\nthreading.stack_size(1 << 16)\n{body}"
    assert outcome(sandbox, small).value in (
        "it started more than 16 threads",
        "RuntimeError: can't start new thread",
    )


def test_memory_is_bounded(sandbox):
    assert outcome(sandbox, "bytearray(10 << 30)").value.startswith("MemoryError")
    assert outcome(sandbox, "kept = []\nwhile True: kept.append(bytes(1 << 20))").value.startswith(
        "MemoryError"
    )


def test_output_is_bounded(sandbox):
    printing = "for _ in range(1024): print('x' * (1 << 20))"
    assert outcome(sandbox, printing) == Outcome("killed", "it printed more than 100000 bytes")


def test_files_are_bounded(sandbox):
    many = "n = 0\nwhile True:\n    n += 1\n    with open(str(n), 'wb') as file: file.write(bytes(1 << 20))"
    assert outcome(sandbox, many).value in (
        "it wrote more than 16777216 bytes of files",
        "one case took more than 1 s",
    )
    large = outcome(
        sandbox, "open('x', 'wb').write(bytes(1 << 26))"
    )  # stopped while it writes, or seen right after
    assert "File too large" in large.value or large.value == "it wrote more than 16777216 bytes of files"


def test_no_socket_is_opened(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert refused(outcome(sandbox, f"import socket; socket.create_connection(('127.0.0.1', {port}))"))
    for family in ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"):
        assert refused(outcome(sandbox, f"import socket; socket.socket(socket.{family}, socket.SOCK_DGRAM)"))


@pytest.mark.parametrize(
    "attack",
    [
        "os.kill(os.getppid(), 9)",
        "os.kill(-1, 9)",
        "os.killpg(0, 9)",
        "os.kill({me}, 9)",
        "os.kill(os.getpid(), 9)",
    ],
)
def test_no_signal_is_sent(sandbox, attack):
    assert refused(outcome(sandbox, "import os; " + attack.format(me=os.getpid())))


def test_a_pipe_cannot_be_made_to_send_signals(sandbox):
    owner = "import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())"
    assert refused(outcome(sandbox, owner))


@pytest.mark.parametrize(
    "change",
    [
        "open({path!r}, 'w')",
        "open({path!r}, 'a')",
        "os.open({path!r}, os.O_RDONLY | os.O_TRUNC)",
        "os.truncate({path!r}, 0)",
        "os.remove({path!r})",
        "os.rename({path!r}, 'mine')",
        "os.link({path!r}, 'mine')",
        "os.symlink('x', {path!r} + '2')",
        "os.chmod({path!r}, 0o777)",
        "os.utime({path!r})",
        "os.mkdir({path!r} + '2')",
        "os.listdir(os.path.dirname({path!r}))",
        "open({path!r}).read()",
    ],
)
def test_other_files_are_out_of_reach(sandbox, tmp_path, change):
    kept = tmp_path / "kept"
    kept.write_text("kept")
    before = kept.stat()
    assert refused(outcome(sandbox, "import os; " + change.format(path=str(kept))))
    assert kept.read_text() == "kept" and kept.stat().st_mtime_ns == before.st_mtime_ns
    assert list(tmp_path.iterdir()) == [kept]


@pytest.mark.parametrize("where", [str(Path.home()), "/tmp", "/dev/shm", ".."])
def test_nothing_is_written_outside_the_scratch_folder(sandbox, where):
    assert refused(outcome(sandbox, f"open({where!r} + '/mmcorl-escaped', 'w')"))
    assert not Path(where, "mmcorl-escaped").exists()


def test_its_own_library_cannot_be_changed(sandbox):
    assert refused(outcome(sandbox, "import os; os.remove(os.__file__)"))
    assert refused(outcome(sandbox, "import os; open(os.__file__, 'a')"))


def test_nothing_of_the_parent_is_seen(sandbox, monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    assert outcome(sandbox, "import os; return dict(os.environ)") == Outcome("ok", "{}")
    assert refused(outcome(sandbox, "import os; return os.listdir('/proc')"))
    open_files = "import os\nreturn [n for n in range(4, 64) if os.dup(n) >= 0]"
    assert outcome(sandbox, open_files).value.startswith("OSError: [Errno 9]")


def test_leaving_early_ends_one_case_only(sandbox):
    source = "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    return x"
    [outcomes] = sandbox.run([Program(source, ("f(0)", "f(1)", "f(2)"))])
    assert outcomes == [
        Outcome("ok", "0"),
        Outcome("killed", "it ended its process with exit code 0"),
        Outcome("ok", "2"),
    ]


@pytest.mark.parametrize("leave", ["raise SystemExit", "raise KeyboardInterrupt", "quit()"])
def test_leaving_by_an_exception_is_an_error(sandbox, leave):
    assert outcome(sandbox, leave).status == "error"


def test_recursion_is_contained(sandbox):
    assert outcome(sandbox, "f()").value.startswith("RecursionError")
    deep = "import sys; sys.setrecursionlimit(10**9)\ndef g(): return [g()]\nreturn g()"
    assert outcome(sandbox, deep).status in ("killed", "error")


def test_crashing_is_contained(sandbox):
    assert outcome(sandbox, "import ctypes; ctypes.string_at(0)") == Outcome("killed", "signal 11")


def test_limits_cannot_be_raised(sandbox):
    raising = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))"
    assert outcome(sandbox, raising).status == "error"
    of_parent = "import os, resource\nresource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (3, 3))"
    assert refused(outcome(sandbox, of_parent))


def test_results_of_others_cannot_be_written(sandbox):
    forge = 'import os\nfor n in range(4, 64):\n    try: os.write(n, b\'[0, "ok", "7"]\\n\')\n    except OSError: pass'
    assert outcome(sandbox, forge) == Outcome("ok", "None")
    for junk in (r"b'x' * 65536", r"b'\n' * 65536", r"b'[0, 1, 2]\n'"):
        flood = f"import os\nwhile True: os.write(3, {junk})"
        assert outcome(sandbox, flood) == Outcome("killed", "it wrote where it should not")


def test_nothing_is_left_behind(sandbox):
    assert outcome(sandbox, "open('left', 'w').write('x')") == Outcome("ok", "None")
    assert outcome(sandbox, "import os; return os.listdir()") == Outcome("ok", "[]")
    assert outcome(sandbox, "import random; return random.random()") == outcome(
        sandbox, "import random; return random.random()"
    )


@pytest.mark.usefixtures("walled_machine")
def test_a_worker_that_is_killed_is_replaced():
    with Sandbox(Limits(program_seconds=30, case_seconds=30), workers=1) as sandbox:
        sandbox.run([Program("", ("1",))])
        [worker] = sandbox._slots.queue
        assert worker is not None
        killer = threading.Timer(0.3, os.kill, (worker.pid, 9))
        killer.start()
        [[result]] = sandbox.run([Program("import time", ("time.sleep(20)",))])
        assert result == Outcome("killed", "the worker was lost: the worker died")
        assert sandbox.run([Program("", ("1",))]) == [[Outcome("ok", "1")]]
