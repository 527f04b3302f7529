"""The qh3 endpoint (`endpoints/CONTRACT.md`): `endpoint.py --virtual-time`, or over sockets.

It is started by the program that `build.py` makes, which says where qh3 is.
"""

import sys

from job import UNSUPPORTED_EXIT, Unsupported

VIRTUAL_TIME = "--virtual-time"


def main(arguments: list[str]) -> int:
    """Exit code by the contract: 0, 127 for what is not supported, 1 for a failure."""
    try:
        if arguments == [VIRTUAL_TIME]:
            import virtual_time

            return virtual_time.main()
        if not arguments:
            import sockets

            return sockets.main()
    except Unsupported as error:
        print(f"qh3: {error}", file=sys.stderr)
        return UNSUPPORTED_EXIT
    print(f"qh3: {' '.join(arguments)}: write {VIRTUAL_TIME}, or nothing for sockets", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
