from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from mmcorl.data.images import DECODE_LIMIT, capped_size, image_size, load_image
from mmcorl.errors import MmcorlError

RED, GREEN, WHITE = (255, 0, 0), (0, 128, 0), (255, 255, 255)


def two_halves() -> Image.Image:
    """Red above green, wider than high."""
    image = Image.new("RGB", (60, 40), RED)
    ImageDraw.Draw(image).rectangle([0, 20, 59, 39], GREEN)
    return image


def encoded(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def load(source: Path | bytes | Image.Image, most: int = 10**6, least: int = 1) -> Image.Image:
    return load_image(source, most, least, "image 0 of problem p7")


def test_files_bytes_and_images_give_the_same(tmp_path: Path):
    path = tmp_path / "halves.png"
    two_halves().save(path)
    loaded = [load(path), load(path.read_bytes()), load(two_halves())]
    assert all(image.mode == "RGB" and image.tobytes() == two_halves().tobytes() for image in loaded)


def test_the_source_image_stays_as_it_was():
    source = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    load(source, most=4).putpixel((0, 0), RED)
    assert source.mode == "RGBA"
    assert source.size == (8, 8)
    same = two_halves()
    load(same).putpixel((0, 0), GREEN)
    assert same.getpixel((0, 0)) == RED


@pytest.mark.parametrize(("orientation", "turn"), [(3, 180), (6, 90), (8, 270)])
def test_photographs_are_turned_upright(orientation: int, turn: int):
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = two_halves().rotate(turn, expand=True)
    upright = load(encoded(stored, "PNG", exif=exif))
    assert upright.size == (60, 40)
    assert (upright.getpixel((30, 5)), upright.getpixel((30, 35))) == (RED, GREEN)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA", "P"])
def test_transparent_parts_are_white(mode: str):
    image = Image.new("RGBA", (20, 10), (0, 0, 0, 0))
    ImageDraw.Draw(image).rectangle([10, 0, 19, 9], (0, 0, 0, 255))
    if mode == "P":
        palette = Image.new("P", (20, 10), 0)
        palette.putpalette([9, 9, 9, 0, 0, 0])
        palette.paste(1, (10, 0, 20, 10))
        loaded = load(encoded(palette, transparency=0))
    else:
        loaded = load(image.convert(mode))
    assert loaded.getpixel((2, 5)) == WHITE
    assert loaded.getpixel((15, 5)) == (0, 0, 0)


def test_half_transparent_colours_mix_with_white():
    assert load(Image.new("RGBA", (4, 4), (255, 0, 0, 128))).getpixel((0, 0)) == (255, 127, 127)


def test_printing_colours():
    cyan = load(encoded(Image.new("CMYK", (8, 8), (255, 0, 0, 0)), "TIFF")).getpixel((0, 0))
    assert cyan == (0, 255, 255)


@pytest.mark.parametrize(("value", "expected"), [(0, 0), (32768, 128), (65535, 255)])
def test_sixteen_bit_grey_keeps_its_tones(value: int, expected: int):
    grey = Image.fromarray(np.full((8, 8), value, dtype=np.uint16))
    assert load(encoded(grey)).getpixel((0, 0)) == (expected,) * 3
    assert load(grey).getpixel((0, 0)) == (expected,) * 3


def test_float_grey_runs_from_zero_to_one():
    grey = Image.fromarray(np.full((8, 8), 0.5, dtype=np.float32))
    assert load(encoded(grey, "TIFF")).getpixel((0, 0)) == (128, 128, 128)


@pytest.mark.parametrize("form", ["GIF", "WEBP"])
def test_the_first_frame_of_a_moving_image(form: str):
    frames = [Image.new("RGB", (16, 16), colour) for colour in (RED, GREEN)]
    moving = encoded(frames[0], form, save_all=True, append_images=frames[1:], lossless=True)
    assert load(moving).getpixel((5, 5)) == RED


def test_images_above_the_cap_are_reduced_in_their_shape():
    reduced = load(Image.new("RGB", (400, 200), RED), most=20_000)
    assert reduced.size == (200, 100)
    assert reduced.getpixel((100, 50)) == RED


def test_images_below_the_floor_are_enlarged_in_their_shape():
    assert load(two_halves(), least=9600).size == (120, 80)


def test_images_within_the_caps_keep_every_pixel():
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 50, 3), dtype=np.uint8))
    assert load(noise, most=1500, least=1500).tobytes() == noise.tobytes()


@given(
    width=st.integers(1, 5000),
    height=st.integers(1, 5000),
    most=st.integers(1, 10**6),
    least=st.integers(1, 10**6),
)
def test_capped_sizes_hold_the_caps_and_the_shape(width: int, height: int, most: int, least: int):
    new_width, new_height = capped_size(width, height, most, least)
    assert 1 <= new_width * new_height <= most
    if width * height < least and 4 * least <= most:
        assert new_width * new_height >= min(least, most)
    if min(new_width, new_height) > 1:
        # Rounding moves each side by less than a pixel.
        assert new_width - 1 <= (new_height + 1) * width / height
        assert new_height - 1 <= (new_width + 1) * height / width


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few bytes that claims to be large."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 99))
        + chunk(b"IEND", b"")
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("side", [8200, 9500, 40_000, 2**31 - 1])
def test_images_that_claim_too_many_pixels_are_not_decoded(side: int):
    assert side**2 > DECODE_LIMIT
    with pytest.raises(MmcorlError, match=rf"problem p7 has more than {DECODE_LIMIT} pixels.*scale it down"):
        load(bomb(side, side))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_truncated_files_name_their_problem(form: str, tmp_path: Path):
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    whole = encoded(noise, form)
    path = tmp_path / f"cut.{form.lower()}"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MmcorlError, match=r"image 0 of problem p7 .* is broken .*; fetch it again") as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"<svg/>", b"not an image", b"%!PS-Adobe-3.0 EPSF-3.0\n"])
def test_what_is_no_image_says_so(content: bytes):
    with pytest.raises(
        MmcorlError, match="image 0 of problem p7 is not an image in one of the formats PNG, JPEG"
    ):
        load(content)


def test_a_missing_file_says_so(tmp_path: Path):
    with pytest.raises(MmcorlError, match=r"nowhere\.png\): no such file"):
        load(tmp_path / "nowhere.png")


def test_a_folder_is_no_image(tmp_path: Path):
    with pytest.raises(MmcorlError, match="problem p7"):
        load(tmp_path)


def test_the_long_side_has_a_cap_of_its_own():
    assert load_image(Image.new("RGB", (400, 100)), 10**6, 1, max_long_side=100).size == (100, 25)
    assert load_image(Image.new("RGB", (100, 400)), 10**6, 10**6, max_long_side=200).size == (50, 200)
    assert load_image(Image.new("RGB", (40, 10)), 10**6, 10**6, max_long_side=80).size == (80, 20)
    assert load_image(Image.new("RGB", (400, 300)), 300, 1, max_long_side=200).size == (20, 15)


@given(
    width=st.integers(1, 5000),
    height=st.integers(1, 5000),
    least=st.integers(1, 10**6),
    long=st.integers(1, 3000),
)
def test_no_side_is_longer_than_the_cap(width: int, height: int, least: int, long: int):
    assert max(capped_size(width, height, 10**6, least, long)) <= long


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_sizes_are_read_without_decoding(orientation: int, tmp_path: Path):
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = encoded(two_halves(), "JPEG", exif=exif)
    (tmp_path / "a.jpg").write_bytes(content)
    assert image_size(content) == image_size(tmp_path / "a.jpg") == load(content).size
    assert image_size(two_halves()) == (60, 40)
    assert image_size(encoded(two_halves())[:60]) == (60, 40)
    with pytest.raises(MmcorlError, match="has more than"):
        image_size(bomb(9000, 9000))
    with pytest.raises(MmcorlError, match="is not an image"):
        image_size(b"text")
