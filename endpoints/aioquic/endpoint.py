"""The aioquic endpoint (`endpoints/CONTRACT.md`): `endpoint.py --virtual-time`, or over sockets.

`--virtual-time --no-shortcut` asks aioquic for datagrams also where there can be none (see `shortcut`).
"""

# ruff: noqa: E402, PTH100, PTH118, PTH120

import os
import sys

# The code that aioquic shares with qh3, its fork, is in a separate folder beside those of the stacks. The
# modules there import `dialect`, `determinism` and `asyncio_layer` from this folder, where Python looks
# first.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "aioquic-family"))

import lean_imports
import program

NO_SHORTCUT = "--no-shortcut"


def main(arguments: list[str]) -> int:
    if program.VIRTUAL_TIME in arguments:
        lean_imports.defer()
    if arguments == [program.VIRTUAL_TIME, NO_SHORTCUT]:
        import shortcut

        arguments.remove(NO_SHORTCUT)
        shortcut.is_taken = False
    return program.main("aioquic", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
