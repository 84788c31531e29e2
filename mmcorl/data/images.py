"""From whatever holds an image to upright RGB pixels within the caps of the configuration."""

from __future__ import annotations

import io
import math
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from mmcorl.errors import MmcorlError
from mmcorl.problems import ImageSource

DECODE_LIMIT = 2**26
"""Most pixels an image may have (67 million, 200 MB as RGB). A small file can claim any number of them."""

# Not all that Pillow opens: some of its formats run other programs.
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000")

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


def load_image(source: ImageSource, max_pixels: int, min_pixels: int, name: str = "image") -> Image.Image:
    """The image as a person sees it: upright, on white where it is transparent, the first frame where it moves.

    Returns a new RGB image of at most `max_pixels` and, as far as that allows, at least `min_pixels` (width times
    height), in the shape of the source. No other place changes sizes before a model's own processor does. `name` says
    in errors whose image it is. Raises MmcorlError for what is missing, broken, not an image or above `DECODE_LIMIT`.
    """
    where = f"{name} ({source})" if isinstance(source, Path) else name
    try:
        if isinstance(source, Image.Image):
            image = _upright_rgb(source, where)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # DECODE_LIMIT is below it
                file = source if isinstance(source, Path) else io.BytesIO(source)
                opened = Image.open(file, formats=_FORMATS)
            with opened:
                image = _upright_rgb(opened, where)
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
    target = capped_size(*image.size, max_pixels, min_pixels)
    return image if target == image.size else image.resize(target, Image.Resampling.BICUBIC)


def capped_size(width: int, height: int, max_pixels: int, min_pixels: int) -> tuple[int, int]:
    """Width and height within the caps, in the shape of the given ones to within a pixel; `max_pixels` goes first."""
    pixels = width * height
    if pixels > max_pixels:
        scale = math.sqrt(max_pixels / pixels)
        # A side of one pixel cannot shrink: then the other side alone meets the cap.
        width = min(max(1, math.floor(width * scale)), max_pixels)
        return width, min(max(1, math.floor(height * scale)), max_pixels // width)
    if pixels < min_pixels:
        scale = math.sqrt(min_pixels / pixels)
        return capped_size(math.ceil(width * scale), math.ceil(height * scale), max_pixels, min_pixels=1)
    return width, height


def _upright_rgb(image: Image.Image, where: str) -> Image.Image:
    if image.width * image.height > DECODE_LIMIT:
        raise MmcorlError(_too_large(where))
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
