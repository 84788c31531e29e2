"""Blocking calls into C++ on a thread aside, so that the caller can stop waiting for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def aside(call: Callable[[], T]) -> Future[T]:
    """Start the call on a thread that, unlike an executor's, does not keep the process alive."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except Exception as error:  # raised again where the future is read
            future.set_exception(error)

    threading.Thread(target=run, name="store", daemon=True).start()
    return future
