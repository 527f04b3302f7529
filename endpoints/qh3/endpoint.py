"""The qh3 endpoint (`endpoints/CONTRACT.md`): `endpoint.py --virtual-time`, or over sockets.

It is started by the program that `build.py` makes, which says where qh3 is.
"""

# ruff: noqa: E402, PTH100, PTH118, PTH120

import os
import sys

# The code that qh3 shares with aioquic, of which it is a fork, is in a folder beside those of the stacks.
# The modules there import `dialect`, `determinism` and `asyncio_layer` from this folder, where Python looks
# first.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "aioquic-family"))

import lean_imports
import program

if __name__ == "__main__":
    if program.VIRTUAL_TIME in sys.argv:
        lean_imports.leave_out()
    sys.exit(program.main("qh3", sys.argv[1:]))
