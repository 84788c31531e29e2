"""Preparing a visual data set, against a plain `datasets.map`: rows a second and peak memory, at the same number of workers.

    python bench/prepare.py [--rows 400] [--side 640] [--workers 2] [--turns 3]

The source is a Parquet file in the layout of open-r1, its images PNGs of about a byte a pixel. Each way ends with the same
problems in a Parquet file, which is checked:

- `mmcorl` streams, decodes every image once to see that it can be, and stores its bytes as they are, with threads;
- `map` is what one writes first: `load_dataset`, `map(num_proc=workers)` over decoded rows, `to_parquet`;
- `map, checked` does what mmcorl does: it stores bytes as they are and decodes every image once;
- `map, undecoded` stores bytes as they are and looks at no image.

Each runs in a process of its own; the ways take turns, and the median of the turns counts. Memory is the largest sum over
the process and its children, looked at twenty times a second, of their proportional set sizes: pages that processes share
count once. Of it, `anon` leaves out pages of mapped files, as `datasets` has them and the system can take back.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
from PIL import Image

WAYS = ("mmcorl", "map", "map, checked", "map, undecoded")
_LOOK_SECONDS = 0.05
_MEASURES = ("seconds", "peak", "anon")


def main() -> None:
    parser = argparse.ArgumentParser(description="Preparing a data set, against a plain `datasets.map`.")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--side", type=int, default=640, help="width and height of the images")
    parser.add_argument("--workers", type=int, default=2, help="threads of mmcorl, processes of map")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(_seconds(options.way, options.folder, options.workers)))
        return
    turns: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    contents = set()
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "source.parquet"
        size = _write_source(source, options.rows, options.side)
        print(f"{options.rows} rows, {size / 2**20:.0f} MiB of images, {options.workers} workers")
        for turn in range(options.turns):
            for way in WAYS:
                with tempfile.TemporaryDirectory(dir=name) as folder:
                    (Path(folder) / source.name).hardlink_to(source)
                    turns[way].append(_in_process(way, Path(folder), options.workers))
                    if turn == 0:
                        contents.add(_content(Path(folder)))
    if len(contents) > 1:
        raise SystemExit("the ways do not end with the same problems")
    results = {
        way: {m: statistics.median(taken[m] for taken in turns[way]) for m in _MEASURES} for way in WAYS
    }
    ours = results["mmcorl"]
    print(
        f"{'':<16}{'rows/s':>8}{'peak MiB':>10}{'anon MiB':>10}   {'mmcorl: x as fast':>17}{'x the peak':>12}{'x the anon':>12}"
    )
    for way, result in results.items():
        ratios = (
            result["seconds"] / ours["seconds"],
            ours["peak"] / result["peak"],
            ours["anon"] / result["anon"],
        )
        print(
            f"{way:<16}{options.rows / result['seconds']:>8.0f}{result['peak'] / 2**20:>10.0f}{result['anon'] / 2**20:>10.0f}"
            f"   {ratios[0]:>17.2f}{ratios[1]:>12.2f}{ratios[2]:>12.2f}"
        )


def _in_process(way: str, folder: Path, workers: int) -> dict[str, float]:
    """Seconds of the work alone, and the peak bytes of the process and its children together."""
    command = [sys.executable, __file__, "--way", way, "--folder", str(folder), "--workers", str(workers)]
    peak = anonymous = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            held = [_held(one.pid) for one in (watched, *_children(watched))]
            peak, anonymous = max(peak, sum(h[0] for h in held)), max(anonymous, sum(h[1] for h in held))
            time.sleep(_LOOK_SECONDS)
        output = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(f"{way} ended with {process.returncode}")
    return {"seconds": json.loads(output.splitlines()[-1]), "peak": peak, "anon": anonymous}


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _held(pid: int) -> tuple[int, int]:
    """Proportional set size of a process in bytes, and its anonymous part; nothing once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    sizes = {name: 1024 * int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return sizes.get("Pss", 0), sizes.get("Pss_Anon", 0)


def _content(folder: Path) -> str:
    """Digest of the problems that a way has written, images by their pixels."""
    [path] = [path for path in folder.rglob("*.parquet") if path.name != "source.parquet"]
    digest = hashlib.sha256()
    columns = ["id", "question", "images", "choices", "kind", "answer"]
    for batch in pq.ParquetFile(path).iter_batches(50, columns=columns):
        for row in batch.to_pylist():
            row["images"] = [_pixels(image["bytes"]) for image in row["images"]]
            digest.update(json.dumps([row[column] for column in columns]).encode())
    return digest.hexdigest()


@lru_cache
def _pixels(image: bytes) -> str:
    return hashlib.sha256(Image.open(io.BytesIO(image)).tobytes()).hexdigest()


def _seconds(way: str, folder: Path, workers: int) -> float:
    """Seconds of the work alone, imports left out."""
    source, out = folder / "source.parquet", folder / "out"
    work = partial(_ours() if way == "mmcorl" else _MAPS[way], source, out, workers)
    import datasets  # all ways need it

    datasets.disable_progress_bars()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _ours() -> Callable[[Path, Path, int], object]:
    from mmcorl.config import DataConfig
    from mmcorl.data.preparing import prepare
    from mmcorl.data.reading import source_of

    return lambda source, out, workers: prepare(
        source_of(DataConfig(source="open-r1", path=str(source))), out, workers
    )


def _mapped(source: Path, out: Path, workers: int) -> None:
    import datasets

    _map(
        datasets.load_dataset("parquet", data_files=str(source), split="train", cache_dir=str(out)),
        out,
        workers,
    )


def _mapped_checked(source: Path, out: Path, workers: int) -> None:
    _mapped_undecoded(source, out, workers, lambda image: Image.open(io.BytesIO(image["bytes"])).load())


def _mapped_undecoded(
    source: Path, out: Path, workers: int, check: Callable[[Any], Any] = lambda image: None
) -> None:
    import datasets

    rows = datasets.load_dataset("parquet", data_files=str(source), split="train", cache_dir=str(out))
    _map(rows.cast_column("image", datasets.Image(decode=False)), out, workers, check)


_MAPS = {"map": _mapped, "map, checked": _mapped_checked, "map, undecoded": _mapped_undecoded}


def _map(rows: Any, out: Path, workers: int, check: Callable[[Any], Any] = lambda image: None) -> None:
    def problem(row: dict[str, Any], number: int) -> dict[str, Any]:
        check(row["image"])
        question, _, options = row["problem"].partition("\nChoices:\n")
        return {
            "id": str(number),
            "question": question,
            "images": [row["image"]],
            "choices": [option.partition(") ")[2] for option in options.splitlines()],
            "kind": "choice",
            "answer": row["solution"].partition("<answer>")[2].partition("</answer>")[0].strip(),
        }

    processes = workers if workers > 1 else None  # none is this one
    made = rows.map(problem, with_indices=True, remove_columns=rows.column_names, num_proc=processes)
    made.to_parquet(str(out / "out.parquet"))


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
