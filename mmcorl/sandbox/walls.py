"""The walls around one program: what it can reach, and how much it can take.

- capabilities are dropped, and `no_new_privs` keeps them from coming back
- Landlock: of all files it can read the Python libraries, and write in one flat scratch folder; no TCP, and no
  signals out of the sandbox, where the kernel knows these
- seccomp: see `syscalls`
- resource limits: CPU, memory, file size, open files, core dumps

Every wall works for an ordinary user as for root, inside a container as outside.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal
import socket
import stat
import struct
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from mmcorl.sandbox import syscalls
from mmcorl.sandbox.programs import Limits

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_VERSION, _LANDLOCK_PATH_BENEATH = 1, 1
_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_FILE, _MAKE_FILE, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 5, 1 << 8, 1 << 14  # fmt: skip
_OPEN_FILES = 64
_STACK_BYTES = 64 << 20

_libc = ctypes.CDLL(None, use_errno=True)


class Walls:
    """The walls of one worker's programs; built once, raised in every child that is to run a program."""

    def __init__(self, scratch: Path, limits: Limits) -> None:
        self._limits = limits
        self._scratch = scratch
        self._missing: list[str] = []
        self._ruleset: int | None = None
        self._filter: ctypes.Array[ctypes.c_char] | None = None
        try:
            self._ruleset = _landlock_ruleset(scratch)
        except OSError as error:
            self._missing.append(
                f"Landlock (Linux 5.13 or newer, with Landlock among its security modules): {error.strerror}"
            )
        machine = platform.machine()
        if machine in syscalls.MACHINES:
            self._filter = ctypes.create_string_buffer(syscalls.filter_program(machine))
        else:
            self._missing.append(f"seccomp (known for {' and '.join(syscalls.MACHINES)}, not for {machine})")

    def raise_all(self, parent: int) -> None:
        """Put this process, a fresh child of `parent` with one thread, behind the walls. There is no way back.

        Raises OSError where a wall does not rise, unless limits are `unprotected`.
        """
        os.chdir(self._scratch)
        with contextlib.suppress(OSError):  # some containers hide it; the memory limit holds all the same
            Path("/proc/self/oom_score_adj").write_text("1000")
        _limit_resources(self._limits)
        for step in (
            _drop_capabilities,
            lambda: _prctl(_PR_SET_NO_NEW_PRIVS, 1),
            lambda: _prctl(_PR_SET_DUMPABLE, 0),
            lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
            self._restrict_files,
            self._filter_system_calls,
        ):
            try:
                step()
            except OSError:
                if not self._limits.unprotected:
                    raise
        if os.getppid() != parent:  # it died before the death signal was asked for
            os._exit(1)

    def _restrict_files(self) -> None:
        if self._ruleset is not None:
            _check(_libc.syscall(_LANDLOCK_RESTRICT_SELF, self._ruleset, 0))

    def _filter_system_calls(self) -> None:
        if self._filter is None:
            return
        count = len(self._filter) // 8
        fprog = struct.pack("HxxxxxxP", count, ctypes.addressof(self._filter))
        _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.create_string_buffer(fprog))

    def missing(self) -> list[str]:
        """Which walls this machine cannot raise, or does not keep to. Tries them on a child."""
        if self._missing:
            return self._missing
        receiving, sending = os.pipe()
        server = os.getpid()
        if (child := os.fork()) == 0:
            try:
                self.raise_all(server)
                found = "\n".join(_holes(server))
            except OSError as error:
                found = f"walls do not rise: {error}"
            os.write(sending, found.encode())
            os._exit(0)
        os.close(sending)
        with os.fdopen(receiving) as lines:
            found = lines.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return found.splitlines() if code == 0 else [f"a sandboxed process ended with {code}"]


def _holes(server: int) -> list[str]:
    """What this process can do and should not."""

    def fork() -> None:
        if os.fork() == 0:
            os._exit(0)

    forbidden: dict[str, Callable[[], object]] = {
        "opening a socket": lambda: socket.socket().close(),
        "starting a process": fork,
        "sending a signal": lambda: os.kill(server, 0),
        "writing outside the scratch folder": lambda: os.open("../escaped", os.O_CREAT | os.O_WRONLY),
        "reading other files": lambda: os.open("/etc/passwd", os.O_RDONLY),
    }
    holes = []
    for name, attempt in forbidden.items():
        with contextlib.suppress(OSError):
            attempt()
            holes.append(f"{name} is not prevented")
    return holes


def _limit_resources(limits: Limits) -> None:
    seconds = int(limits.program_seconds) + 2
    for kind, value in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.files_bytes),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_STACK, _STACK_BYTES),
    ):
        _, hard = resource.getrlimit(kind)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))


def _drop_capabilities() -> None:
    if (call := _CAPSET.get(platform.machine())) is not None:  # elsewhere `missing` has spoken already
        header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITY_VERSION_3, 0))
        nothing = ctypes.create_string_buffer(24)
        _check(_libc.syscall(call, header, nothing))


def _landlock_ruleset(scratch: Path) -> int:
    """A ruleset that allows reading libraries and working in the scratch folder. Raises OSError without Landlock."""
    version = _check(_libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION))
    files = (1 << (13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16)) - 1
    network = 0b11 if version >= 4 else 0  # bind and connect of TCP
    signals = 0b11 if version >= 6 else 0  # abstract sockets and signals to outside
    attributes = struct.pack("QQQ", files, network, signals)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _check(
        _libc.syscall(_LANDLOCK_CREATE_RULESET, ctypes.create_string_buffer(attributes), size, 0)
    )
    allowed = dict.fromkeys(_readable(), _READ_FILE | _READ_DIR)
    allowed[Path("/dev/null")] = _READ_FILE | _WRITE_FILE | _TRUNCATE
    allowed[scratch] = _READ_FILE | _WRITE_FILE | _TRUNCATE | _READ_DIR | _MAKE_FILE | _REMOVE_FILE
    for path, rights in allowed.items():
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _READ_FILE | _WRITE_FILE | _TRUNCATE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights & files, descriptor))
        _check(_libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_PATH_BENEATH, rule, 0))
        os.close(descriptor)
    return ruleset


def _readable() -> set[Path]:
    """Python's own libraries, installed packages and shared libraries; not the folder of an editable install."""
    packages = [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    python = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    libraries = [
        sysconfig.get_config_var("LIBDIR"),
        "/lib",
        "/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
    ]
    system = ["/usr/share/zoneinfo", "/etc/localtime", "/etc/ld.so.cache", "/dev/zero", "/dev/urandom"]
    found = {Path(p) for p in (*packages, *python, *libraries, *system) if p}
    return {p for p in found if p.exists()}


def _prctl(option: int, value: int, pointer: object = 0) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), pointer, ctypes.c_ulong(0), ctypes.c_ulong(0)))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
