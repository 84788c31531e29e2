"""Images from the web, where a data set names them by URL and its reader asked for them."""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPException

from mmcorl.data.bad_rows import BadRow

TIMEOUT_S = 20.0
MOST_BYTES = 2**26
"""Largest file that is fetched, 64 MiB."""


def fetch(url: str) -> bytes:
    """The content of an http or https URL. Raises BadRow where it cannot be had or is too large."""
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "mmcorl"})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            content = answer.read(MOST_BYTES + 1)
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        raise BadRow("URL cannot be fetched", f"the image {url[:120]} cannot be fetched ({error})") from None
    if len(content) > MOST_BYTES:
        raise BadRow("image at URL too large", f"the image {url[:120]} has more than {MOST_BYTES} bytes")
    return content
