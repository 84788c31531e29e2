"""Write tiny random models of the real architectures, for tests and benchmarks.

    python data_tools/make_tiny_models.py OUT [--family qwen2_5_vl ...] [--seed 0]

Each family becomes a `from_pretrained` folder OUT/FAMILY.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from mmcorl.agents.tiny import FAMILIES, make_tiny


def main() -> None:
    parser = argparse.ArgumentParser(description="Write tiny random models of the real architectures.")
    parser.add_argument("out", type=Path, help="folder that gets one folder for each family")
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=list(FAMILIES), help="default: all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random weights")
    args = parser.parse_args()
    for family in args.family:
        print(make_tiny(family, args.out / family, seed=args.seed))


if __name__ == "__main__":
    main()
