"""The aioquic endpoint (`endpoints/CONTRACT.md`): `endpoint.py --virtual-time`, or over sockets.

`--virtual-time --no-shortcut` asks aioquic for datagrams also where there can be none (see `shortcut`).
"""

import gc
import sys

import lean_imports
from job import UNSUPPORTED_EXIT, Unsupported

VIRTUAL_TIME, NO_SHORTCUT = "--virtual-time", "--no-shortcut"


def main(arguments: list[str]) -> int:
    """Exit code by the contract: 0, 127 for what is not supported, 1 for a failure."""
    try:
        if arguments in ([VIRTUAL_TIME], [VIRTUAL_TIME, NO_SHORTCUT]):
            return _virtual_time(NO_SHORTCUT not in arguments)
        if not arguments:
            import sockets

            return sockets.main()
    except Unsupported as error:
        print(f"aioquic: {error}", file=sys.stderr)
        return UNSUPPORTED_EXIT
    print(f"aioquic: {' '.join(arguments)}: write {VIRTUAL_TIME}, or nothing for sockets", file=sys.stderr)
    return 1


def _virtual_time(shortcut: bool) -> int:
    # The process lives for one trial: the collector would only walk the same living objects again and again.
    gc.disable()
    lean_imports.defer()
    import virtual_time

    return virtual_time.main(shortcut)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
