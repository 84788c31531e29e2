"""From whatever holds an image to upright RGB pixels within the caps of the configuration."""

from __future__ import annotations

import io
import math
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from mmcorl.config import ImagesConfig
from mmcorl.errors import MmcorlError
from mmcorl.problems import ImageSource

DECODE_LIMIT = 2**26
"""Most pixels an image may have (67 million, 200 MB as RGB). A small file can claim any number of them."""

# Not all that Pillow opens: some of its formats run other programs.
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000")

_ORIENTATION = 0x0112  # the EXIF tag
_QUARTER_TURNS = (5, 6, 7, 8)

# What Pillow's decoders raise on broken files, beside the OSError that they should.
_DECODE_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    ArithmeticError,
    struct.error,
    zlib.error,
)


def load_image(
    source: ImageSource,
    max_pixels: int,
    min_pixels: int,
    name: str = "image",
    max_long_side: int | None = None,
) -> Image.Image:
    """The image as a person sees it: upright, on white where it is transparent, the first frame where it moves.

    Returns a new RGB image within the caps of `capped_size`, in the shape of the source. No other place changes sizes
    before a model's own processor does. `name` says in errors whose image it is. Raises MmcorlError for what is
    missing, broken, not an image or above `DECODE_LIMIT`.
    """
    where = f"{name} ({source})" if isinstance(source, Path) else name
    with _faults_named(where), _opened(source) as opened:
        image = _upright_rgb(opened, where)
    target = capped_size(*image.size, max_pixels, min_pixels, max_long_side)
    return image if target == image.size else image.resize(target, Image.Resampling.BICUBIC)


def shown_image(source: ImageSource, caps: ImagesConfig, name: str = "image") -> Image.Image:
    """`load_image` within the caps of the configuration: what every model is shown."""
    return load_image(source, caps.max_pixels, caps.min_pixels, name, caps.max_long_side)


def image_size(source: ImageSource, name: str = "image") -> tuple[int, int]:
    """Width and height of the upright image, read from its head without decoding its pixels.

    Raises MmcorlError for what is missing, not an image or above `DECODE_LIMIT`.
    """
    where = f"{name} ({source})" if isinstance(source, Path) else name
    with _faults_named(where), _opened(source) as image:
        _require_decodable(image, where)
        # Pillow would decode a PNG to look for EXIF data behind its pixels.
        exif = image.getexif() if image.format != "PNG" or "exif" in image.info else {}
        turned = exif.get(_ORIENTATION, 1) in _QUARTER_TURNS
        return (image.height, image.width) if turned else image.size


def capped_size(
    width: int, height: int, max_pixels: int, min_pixels: int, max_long_side: int | None = None
) -> tuple[int, int]:
    """Width and height within the caps, in the shape of the given ones to within a pixel.

    At most `max_pixels` (width times height) and `max_long_side`, and as far as those allow at least `min_pixels`.
    """
    if max_long_side is not None and (long := max(width, height)) > max_long_side:
        scale = max_long_side / long
        return capped_size(max(1, round(width * scale)), max(1, round(height * scale)), max_pixels, 1)
    pixels = width * height
    if pixels > max_pixels:
        scale = math.sqrt(max_pixels / pixels)
        # A side of one pixel cannot shrink: then the other side alone meets the cap.
        width = min(max(1, math.floor(width * scale)), max_pixels)
        return width, min(max(1, math.floor(height * scale)), max_pixels // width)
    if pixels < min_pixels:
        scale = math.sqrt(min_pixels / pixels)
        enlarged = math.ceil(width * scale), math.ceil(height * scale)
        return capped_size(*enlarged, max_pixels, 1, max_long_side)
    return width, height


@contextmanager
def _opened(source: ImageSource) -> Iterator[Image.Image]:
    if isinstance(source, Image.Image):
        yield source
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # DECODE_LIMIT is below it
        image = Image.open(source if isinstance(source, Path) else io.BytesIO(source), formats=_FORMATS)
    with image:
        yield image


@contextmanager
def _faults_named(where: str) -> Iterator[None]:
    """Every way in which an image can be bad, as a MmcorlError."""
    try:
        yield
    except MmcorlError:
        raise
    except FileNotFoundError:
        raise MmcorlError(
            f"{where}: no such file; image paths are relative to the file that names them"
        ) from None
    except UnidentifiedImageError:
        raise MmcorlError(
            f"{where} is not an image in one of the formats {', '.join(_FORMATS)}; save it as PNG"
        ) from None
    except Image.DecompressionBombError:
        raise MmcorlError(_too_large(where)) from None
    except _DECODE_ERRORS as error:
        raise MmcorlError(f"{where} is broken ({error}); fetch it again or leave its row out") from None


def _require_decodable(image: Image.Image, where: str) -> None:
    if image.width * image.height > DECODE_LIMIT:
        raise MmcorlError(_too_large(where))


def _upright_rgb(image: Image.Image, where: str) -> Image.Image:
    _require_decodable(image, where)
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith(("I", "F")):
        return _eight_bits(image).convert("RGB")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """Deep grey (16-bit integers, or floats from 0 to 1) as 8 bits; Pillow's own conversion clips it to white."""
    white = 1.0 if image.mode == "F" else 65535.0
    levels = np.asarray(image, dtype=np.float64) * (255.0 / white)
    return Image.fromarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8))


def _too_large(where: str) -> str:
    return f"{where} has more than {DECODE_LIMIT} pixels, too many to decode safely; scale it down first"
