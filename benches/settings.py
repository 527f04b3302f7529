"""The settings of a benchmark: those that measure something, and with `--smallest` those that only show that
it runs, within seconds.
"""

from __future__ import annotations

import argparse


def read(parser: argparse.ArgumentParser, **smallest: object) -> argparse.Namespace:
    """The settings on the command line; `smallest` replaces the defaults where `--smallest` is given."""
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in smallest.items())
    parser.add_argument(
        "--smallest", action="store_true", help=f"only show that it runs; stands for {words or 'nothing'}"
    )
    if parser.parse_args().smallest:
        parser.set_defaults(**smallest)
    return parser.parse_args()
