"""Preparing a visual data set, against a plain `datasets.map`: rows a second and peak memory.

    python bench/prepare.py [--rows 400] [--side 640] [--workers 2]

The source is a Parquet file in the layout of open-r1, its images PNGs of about a byte a pixel. Each way runs in a process of
its own and ends with problems in a Parquet file:

- `mmcorl` streams, decodes every image once to see that it can be, and stores its bytes as they are;
- `map` is what one writes first: `load_dataset`, `map` over decoded rows, `to_parquet`;
- `map, checked` does what mmcorl does: it stores bytes as they are and decodes every image once;
- `map, undecoded` stores bytes as they are and looks at no image.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WAYS = ("mmcorl", "map", "map, checked", "map, undecoded")


def main() -> None:
    parser = argparse.ArgumentParser(description="Preparing a data set, against a plain `datasets.map`.")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--side", type=int, default=640, help="width and height of the images")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(_measured(options.way, options.folder, options.workers)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = _write_source(folder / "source.parquet", options.rows, options.side)
        print(f"{options.rows} rows, {size / 2**20:.0f} MiB of images")
        results = {way: _in_process(way, folder, options) for way in WAYS}
    ours = results["mmcorl"]
    print(f"{'':<16}{'rows/s':>9}{'peak MiB':>10}{'mmcorl is x as fast':>22}{'with x the memory':>20}")
    for way, result in results.items():
        rate = options.rows / result["seconds"]
        print(
            f"{way:<16}{rate:>9.0f}{result['peak'] / 2**20:>10.0f}{result['seconds'] / ours['seconds']:>22.2f}"
            f"{ours['peak'] / result['peak']:>20.2f}"
        )


def _in_process(way: str, folder: Path, options: argparse.Namespace) -> dict[str, float]:
    command = [
        sys.executable,
        __file__,
        "--way",
        way,
        "--folder",
        str(folder),
        "--workers",
        str(options.workers),
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


def _measured(way: str, folder: Path, workers: int) -> dict[str, float]:
    """Seconds of the work alone, imports left out, and peak bytes of the whole process."""
    source, out = folder / "source.parquet", folder / way.replace(", ", "_")
    ways = {
        "mmcorl": _ours,
        "map": _mapped,
        "map, checked": _mapped_checked,
        "map, undecoded": _mapped_undecoded,
    }
    work = ways[way]
    import datasets  # both ways need it

    datasets.disable_progress_bars()
    started = time.perf_counter()
    work(source, out, workers)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "peak": _peak_bytes()}


def _peak_bytes() -> float:
    """Largest resident set of this process so far. `getrusage` would count that of the process it was forked from."""
    status = Path("/proc/self/status").read_text()
    return 1024 * float(status.partition("VmHWM:")[2].split()[0])


def _ours(source: Path, out: Path, workers: int) -> None:
    from mmcorl.config import DataConfig
    from mmcorl.data.preparing import prepare
    from mmcorl.data.reading import source_of

    prepare(source_of(DataConfig(source="open-r1", path=str(source))), out, workers)


def _mapped(source: Path, out: Path, workers: int) -> None:
    import datasets

    _map(datasets.load_dataset("parquet", data_files=str(source), split="train", cache_dir=str(out)), out)


def _mapped_checked(source: Path, out: Path, workers: int) -> None:
    from PIL import Image

    _mapped_undecoded(source, out, workers, lambda image: Image.open(io.BytesIO(image["bytes"])).load())


def _mapped_undecoded(
    source: Path, out: Path, workers: int, check: Callable[[Any], Any] = lambda image: None
) -> None:
    import datasets

    rows = datasets.load_dataset("parquet", data_files=str(source), split="train", cache_dir=str(out))
    _map(rows.cast_column("image", datasets.Image(decode=False)), out, check)


def _map(rows: Any, out: Path, check: Callable[[Any], Any] = lambda image: None) -> None:
    def problem(row: dict[str, Any], number: int) -> dict[str, Any]:
        check(row["image"])
        gold = row["solution"].partition("<answer>")[2].partition("</answer>")[0].strip()
        return {"id": str(number), "question": row["problem"], "images": [row["image"]], "answer": gold}

    rows.map(problem, with_indices=True, remove_columns=rows.column_names).to_parquet(
        str(out / "out.parquet")
    )


def _write_source(path: Path, rows: int, side: int) -> int:
    import datasets

    features = datasets.Features(
        {
            name: datasets.Value("string")
            for name in ("problem", "solution", "original_question", "original_answer")
        }
        | {"image": datasets.Image()}
    )
    generator = np.random.default_rng(0)
    images = [_photograph(generator, side) for _ in range(min(rows, 40))]
    table = [
        {
            "image": {"bytes": images[number % len(images)], "path": None},
            "problem": f"<image>How long is side {number}?\nChoices:\n(A) 3\n(B) 4",
            "solution": "<think>It is 4.</think>\n\n<answer>B</answer>",
            "original_question": "How long?",
            "original_answer": "4",
        }
        for number in range(rows)
    ]
    datasets.disable_progress_bars()
    datasets.Dataset.from_list(table, features=features).to_parquet(path, batch_size=50)
    return sum(len(row["image"]["bytes"]) for row in table)


def _photograph(generator: np.random.Generator, side: int) -> bytes:
    """A PNG of smooth colours with some noise, of about a byte a pixel."""
    from PIL import Image

    coarse = generator.integers(0, 256, (8, 8, 3), dtype=np.uint8)
    smooth = np.asarray(
        Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC), dtype=np.int16
    )
    noisy = np.clip(smooth + generator.integers(-4, 5, smooth.shape), 0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noisy).save(buffer, "PNG")
    return buffer.getvalue()


if __name__ == "__main__":
    main()
