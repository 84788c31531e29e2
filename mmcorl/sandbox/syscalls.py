"""The system calls that a program may make, as a filter for the kernel (seccomp-BPF). All others fail with EPERM.

What is missing is the point: no sockets, no new processes (only threads), no signals to others, no tracing, no
mounting, no change of permissions, owners or times of files, no io_uring, no namespaces, no new programs.
Numbers are those of Linux's asm/unistd.h.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence

# name: (x86_64, aarch64); None where an architecture has no such call. The most frequent first: the filter is a list.
_ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "mmap": (9, 222), "munmap": (11, 215), "brk": (12, 214),
    "futex": (202, 98), "close": (3, 57), "lseek": (8, 62), "fstat": (5, 80), "newfstatat": (262, 79),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "mremap": (25, 216), "mprotect": (10, 226),
    "madvise": (28, 233), "clock_gettime": (228, 113), "getrandom": (318, 278),
    # files
    "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68), "close_range": (436, 436),
    "stat": (4, None), "lstat": (6, None), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "readlink": (89, None), "readlinkat": (267, 78), "getcwd": (79, 17),
    "getdents64": (217, 61), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None),
    "pipe2": (293, 59), "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "ftruncate": (77, 46), "fsync": (74, 82), "fdatasync": (75, 83), "unlink": (87, None), "unlinkat": (263, 35),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "chdir": (80, 49), "fchdir": (81, 50),
    "umask": (95, 166), "flock": (73, 32), "fadvise64": (221, 223), "sendfile": (40, 71),
    # signals and timers of its own
    "rt_sigreturn": (15, 139), "sigaltstack": (131, 132), "setitimer": (38, 103), "getitimer": (36, 102),
    "alarm": (37, None), "pause": (34, None), "restart_syscall": (219, 128),
    # asking
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getpgrp": (111, None), "getpgid": (121, 155),
    "getsid": (124, 156), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177),
    "getgroups": (115, 158), "getresuid": (118, 148), "getresgid": (120, 150), "getpriority": (140, 141),
    "sched_getaffinity": (204, 123), "sysinfo": (99, 179), "uname": (63, 160), "getcpu": (309, 168),
    "getrusage": (98, 165), "getrlimit": (97, 163), "times": (100, 153), "time": (201, None),
    "clock_getres": (229, 114), "gettimeofday": (96, 169),
    # waiting, threads, the end
    "sched_yield": (24, 124), "nanosleep": (35, 101), "clock_nanosleep": (230, 115),
    "set_robust_list": (273, 99), "get_robust_list": (274, 100), "rseq": (334, 293), "set_tid_address": (218, 96),
    "arch_prctl": (158, None), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES = tuple(_AUDIT_ARCH)

_LOAD, _JUMP_EQUAL, _JUMP_ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_NUMBER, _ARCH = 0, 4  # offsets in struct seccomp_data
_KILL, _ALLOW = 0x80000000, 0x7FFF0000

_CLONE_THREAD = 0x10000
_IOCTLS = (0x5401, 0x5450, 0x5451)  # TCGETS (isatty), FIONCLEX, FIOCLEX
_FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 1030)  # all but those that send signals: F_SETOWN and its kind
_O_TRUNC, _O_ACCMODE = 0o1000, 0o3

_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


def filter_program(machine: str = platform.machine()) -> bytes:
    """The filter as an array of struct sock_filter. `machine` is one of MACHINES."""
    column = MACHINES.index(machine)
    deny = (_RETURN, 0, 0, _error(errno.EPERM))
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    for numbers in _ALLOWED.values():
        if (number := numbers[column]) is not None:
            program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for numbers, rule in _conditions(deny):
        if (number := numbers[column]) is not None:
            program += [(_JUMP_EQUAL, 0, len(rule), number), *rule]
    program.append(deny)
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _conditions(
    deny: _Instruction,
) -> list[tuple[tuple[int | None, int | None], list[_Instruction]]]:
    """Calls that depend on an argument, each with the instructions that decide."""
    truncates_unwritten = [(_AND, 0, 0, _O_TRUNC | _O_ACCMODE), (_JUMP_EQUAL, 0, 1, _O_TRUNC), deny]
    allow = (_RETURN, 0, 0, _ALLOW)
    return [
        ((56, 220), [_argument(0), (_JUMP_ANY_BIT, 0, 1, _CLONE_THREAD), allow, deny]),
        ((435, 435), [(_RETURN, 0, 0, _error(errno.ENOSYS))]),  # clone3: libc falls back on clone
        ((16, 29), _one_of(1, _IOCTLS, deny)),
        ((72, 25), _one_of(1, _FCNTLS, deny)),
        ((302, 261), _one_of(0, (0,), deny)),  # prlimit64 of this process only
        # Before Landlock knew truncation (Linux 6.2), reading was enough to empty a file with open().
        ((2, None), [_argument(1), *truncates_unwritten, allow]),
        ((257, 56), [_argument(2), *truncates_unwritten, allow]),
    ]


def _one_of(index: int, values: Sequence[int], deny: _Instruction) -> list[_Instruction]:
    tests = [(_JUMP_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [_argument(index), *tests, deny, (_RETURN, 0, 0, _ALLOW)]


def _argument(index: int) -> _Instruction:
    """Load the low 32 bits of an argument, all that the kernel looks at in the calls above."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _error(number: int) -> int:
    return 0x00050000 | number
