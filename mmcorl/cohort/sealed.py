"""A store whose values carry a seal, so that what others put there, or moved there, is refused."""

from __future__ import annotations

import hmac
import stat
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

from torch.distributed import Store

from mmcorl.errors import CohortMismatch, MmcorlError

_DIGITS = 64  # of the seal, in hexadecimal
_SHORTEST = 32  # characters of a secret
_RECIPE = "make one with `(umask 077; openssl rand -hex 32 > FILE)` and give every machine a copy"


class Forged(CohortMismatch):
    """A value in the cohort's store that nobody who knows the cohort's secret put where it is."""


class Sealed:
    """A view of a torch store in which every value bears the HMAC-SHA256 of its whole key and its text.

    A key says what a value is for (attempt, number of the exchange, sender, receiver), so a value that was recorded
    and is put under another key is refused like one that was made up. It is no cipher: values can be read by all who
    reach the store, and keys be deleted or overwritten. With an empty secret the seal only shows damage.

    Args:
        store: Where values lie: any of torch's.
        secret: What all agents of the cohort know and nobody else.
        prefix: Part of every key.
    """

    def __init__(self, store: Store, secret: bytes, prefix: str) -> None:
        self._store, self._secret, self._prefix = store, secret, prefix

    def clone(self) -> Sealed:
        """The same view over a connection of its own: one that waits for a key cannot be shared by threads."""
        return Sealed(self._store.clone(), self._secret, self._prefix)

    def set(self, key: str, text: str) -> None:
        """Put an ASCII text under `key`."""
        whole = self._whole(key)
        self._store.set(whole, self._seal(whole, text.encode("ascii")) + text)

    def get(self, key: str) -> bytes:
        """The text under `key`, waited for. Raises Forged when its seal is not right for this key."""
        whole = self._whole(key)
        value = self._store.get(whole)
        seal, text = value[:_DIGITS], value[_DIGITS:]
        if not hmac.compare_digest(seal, self._seal(whole, text).encode()):
            raise Forged(
                f"{whole} in the cohort's store does not bear the seal of this cohort's secret: give every machine the "
                "same cohort.secret_file, and look who else reaches cohort.store"
            )
        return text

    def check(self, keys: Sequence[str]) -> bool:
        """Whether there is something under each of `keys`, whoever put it there."""
        return self._store.check([self._whole(key) for key in keys])

    def wait(self, keys: Sequence[str], timeout: timedelta) -> None:
        """Until there is something under each of `keys`, whoever put it there."""
        self._store.wait([self._whole(key) for key in keys], timeout)

    def delete_key(self, key: str) -> None:
        self._store.delete_key(self._whole(key))

    def _whole(self, key: str) -> str:
        return f"{self._prefix}/{key}"

    def _seal(self, key: str, text: bytes) -> str:
        return hmac.new(self._secret, f"{len(key)}:{key}".encode() + text, sha256).hexdigest()


def read_secret(path: Path) -> bytes:
    """The secret in a file. Raises MmcorlError when it is missing, open to others, or too short to be one."""
    path = path.expanduser()
    try:
        secret, mode = path.read_bytes().strip(), stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise MmcorlError(f"cohort.secret_file={path} cannot be read ({error.strerror}); {_RECIPE}") from None
    if mode & 0o077:
        raise MmcorlError(
            f"cohort.secret_file={path} is open to other users (mode {mode:o}); run `chmod 600 {path}`"
        )
    if len(secret) < _SHORTEST:
        raise MmcorlError(
            f"cohort.secret_file={path} holds {len(secret)} characters, and {_SHORTEST} is the least; {_RECIPE}"
        )
    return secret


def require_secret(url: str) -> MmcorlError:
    """What to tell a user whose store other machines reach, and who has set no secret."""
    return MmcorlError(
        f"cohort.store={url} can be reached from other machines and cohort.secret_file is not set; {_RECIPE}, then set "
        "cohort.secret_file=FILE on each"
    )
