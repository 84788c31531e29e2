"""Stores: where ballots meet, opened from `cohort.store`."""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from torch.distributed import DistError, FileStore, HashStore, Store, TCPStore

from mmcorl.cohort.aside import aside
from mmcorl.errors import MmcorlError

_RETRY_SECONDS = 0.1
_ANSWER_SECONDS = 30.0
"""Within which what is at the address must prove to be a store."""

_in_memory: dict[str, Store] = {}


def open_store(url: str, is_host: bool, reach_within: float = 60.0) -> tuple[Store, str]:
    """Open the store at `url`; gives it and the address at which the other agents find it.

    - `tcp://host:port` for agents in different processes and on different machines. The process with `is_host`
      serves it, the others connect. Port 0 picks a free one. On a loopback host it is served to this machine only, on
      any other to all networks: it has no password, so keep it behind a firewall.
    - `file:///path` for a shared file system. The folder must exist.
    - `memory://name` for threads of one process.

    Raises MmcorlError when the store cannot be served, or not be reached within `reach_within` seconds.
    """
    parts = urlsplit(url)
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


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise MmcorlError(f"cohort.store={url}: {error}") from None
    if not host or port is None:
        raise MmcorlError(f"cohort.store={url} lacks a host or a port; write tcp://host:port")
    return host, port


def _serve(url: str, host: str, port: int) -> tuple[Store, str]:
    # The socket is made here: torch's own would listen on every network whatever the host, and a busy port would
    # print pages of C++ frames.
    family = _resolve(url, host)
    everywhere = "::" if family is socket.AF_INET6 else "0.0.0.0"
    try:
        listener = socket.create_server(
            (host if _is_loopback(host) else everywhere, port),
            family=family,
            dualstack_ipv6=everywhere == "::" and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        raise MmcorlError(
            f"cohort.store={url} cannot be served here: {_reason(error)}; choose another port, or port 0 for a free one"
        ) from None
    port = listener.getsockname()[1]
    local = host if _is_loopback(host) else "localhost"
    store = TCPStore(local, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach())
    return store, f"tcp://{f'[{host}]' if ':' in host else host}:{port}"


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


def _resolve(url: str, host: str) -> socket.AddressFamily:
    try:
        return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise MmcorlError(f"cohort.store={url}: {host} cannot be resolved ({error.strerror})") from None


def _reason(error: OSError) -> str:
    """`Address already in use`, without the address, which the message has."""
    return os.strerror(error.errno) if error.errno else str(error)


def _is_loopback(host: str) -> bool:
    # By how it is written: on many systems a machine's own name resolves to a loopback address.
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
