"""Stores: where ballots meet, opened from `cohort.store`."""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import socket
import time
from datetime import timedelta
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from torch.distributed import DistError, FileStore, HashStore, Store, TCPStore

from mmcorl.cohort.aside import aside
from mmcorl.errors import MmcorlError

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.1
_ANSWER_SECONDS = 30.0
"""Within which what is at the address must prove to be a store."""

_in_memory: dict[str, Store] = {}


def open_store(url: str, is_host: bool, reach_within: float = 60.0) -> tuple[Store, str]:
    """Open the store at `url`; gives it and the address at which the other agents find it.

    - `tcp://host:port` for agents in different processes and on different machines. The process with `is_host`
      serves it, the others connect. Port 0 picks a free one. It listens at the host's address only, and on all networks
      where that is none of this machine's, as behind a forwarded port. Whoever reaches it may read and write: `Sealed`
      finds out what was written.
    - `file:///path` for a shared file system. The folder must exist.
    - `memory://name` for threads of one process.

    Raises MmcorlError when the store cannot be served, or not be reached within `reach_within` seconds.
    """
    parts = _parts(url)
    match parts.scheme:
        case "tcp":
            host, port = _host_and_port(url)
            return _serve(url, host, port) if is_host else (_connect(url, host, port, reach_within), url)
        case "file":
            return _file(url, parts.netloc, Path(parts.path)), url
        case "memory":
            return _in_memory.setdefault(url, HashStore()), url
        case _:
            raise MmcorlError(
                f"cohort.store={url} is none of tcp://host:port, file:///path and memory://name"
            )


def is_reached_from_elsewhere(url: str) -> bool:
    """Whether other machines can reach the store at `url`, past what a file system would ask them for."""
    return _parts(url).scheme == "tcp" and not _is_loopback(_host_and_port(url)[0])


def _parts(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:  # a bracket that is not closed
        raise MmcorlError(f"cohort.store={url}: {error}") from None


def _host_and_port(url: str) -> tuple[str, int]:
    parts = _parts(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise MmcorlError(f"cohort.store={url}: {error}") from None
    if not host or port is None:
        raise MmcorlError(f"cohort.store={url} lacks a host or a port; write tcp://host:port")
    return host, port


def _serve(url: str, host: str, port: int) -> tuple[Store, str]:
    family, address = _resolve(url, host)
    # A machine's own name often resolves to a loopback address in its own files, where it is of no use to others.
    at = address if _is_loopback(host) or not _is_loopback(address) else ""
    try:
        try:
            listener = _listener(at, port, family)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            at, listener = "", _listener("", port, family)
    except OSError as error:
        raise MmcorlError(
            f"cohort.store={url} cannot be served here: {_reason(error)}; choose another port, or port 0 for a free one"
        ) from None
    if not at:
        logger.warning(
            "cohort.store=%s is served on all networks: %s is no address of this machine's", url, host
        )
    port = listener.getsockname()[1]
    own = at or "localhost"
    store = TCPStore(own, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach())
    return store, f"tcp://{f'[{host}]' if ':' in host else host}:{port}"


def _listener(at: str, port: int, family: socket.AddressFamily) -> socket.socket:
    """A socket at this address, or on all networks. Torch's own would listen on all whatever the host, and a busy port
    would print pages of C++ frames."""
    both = not at and family is socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server((at, port), family=family, dualstack_ipv6=both)


def _connect(url: str, host: str, port: int, reach_within: float) -> Store:
    if port == 0:
        raise MmcorlError(
            f"cohort.store={url} names no port; use the address that the host of the store printed"
        )
    _resolve(url, host)
    deadline = time.monotonic() + reach_within
    while True:
        try:
            socket.create_connection(
                (host, port), timeout=max(_RETRY_SECONDS, deadline - time.monotonic())
            ).close()
            break
        except OSError as error:
            if time.monotonic() > deadline:
                raise MmcorlError(
                    f"cohort.store={url} was not reached within {reach_within:g} s: {_reason(error)}; start the agent that "
                    "hosts the store, and check the address and firewalls between the machines"
                ) from None
        time.sleep(_RETRY_SECONDS)
    within = min(reach_within, _ANSWER_SECONDS)
    patience = timedelta(seconds=within)
    opening = aside(lambda: TCPStore(host, port, is_master=False, timeout=patience, wait_for_workers=False))
    try:
        return opening.result(timeout=within)
    except (DistError, TimeoutError):  # torch itself waits for ever for one that says nothing
        raise MmcorlError(f"cohort.store={url}: what answers there is not a store; check the port") from None


def _resolve(url: str, host: str) -> tuple[socket.AddressFamily, str]:
    """The family and the first address of a host."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
        return family, str(address[0])
    except (OSError, UnicodeError) as error:  # the latter for what can be no name, such as a..b
        reason = error.strerror if isinstance(error, OSError) else "no name of a host"
        raise MmcorlError(f"cohort.store={url}: {host} cannot be resolved ({reason})") from None


def _reason(error: OSError) -> str:
    """`Address already in use`, without the address, which the message has."""
    return os.strerror(error.errno) if error.errno else str(error)


def _is_loopback(host: str) -> bool:
    # By how it is written, as other machines see it.
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _file(url: str, host: str, path: Path) -> Store:
    if host or not path.name:
        raise MmcorlError(f"cohort.store={url} names no file; write file:///path, with three slashes")
    try:
        with path.open("a+b") as file:  # torch would try for minutes
            file.seek(0)
            start = file.read(4)
    except OSError as error:
        raise MmcorlError(f"cohort.store={url} cannot be written: {_reason(error)}") from None
    # A FileStore begins with the length of its first key; in anything else torch would look for its end for ever.
    if start and not (len(start) == 4 and int.from_bytes(start, "little") < 1000):
        raise MmcorlError(f"cohort.store={url} is a file of something else; name one that does not exist yet")
    return FileStore(str(path), -1)
