"""The endpoint program of either stack (`endpoints/CONTRACT.md`), for its `endpoint.py` to start."""

import gc
import sys

from failures import Failed, Unsupported

VIRTUAL_TIME = "--virtual-time"
UNSUPPORTED_EXIT = 127


def main(name: str, arguments: list[str]) -> int:
    """Exit code by the contract: 0, 127 for what is not supported, 1 for a failure."""
    try:
        if arguments == [VIRTUAL_TIME]:
            return _virtual_time()
        if not arguments:
            import sockets

            return sockets.main()
        raise Failed(f"{' '.join(arguments)}: write {VIRTUAL_TIME}, or nothing for sockets")
    except Unsupported as error:
        print(f"{name}: {error}", file=sys.stderr)
        return UNSUPPORTED_EXIT
    except (Failed, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1


def _virtual_time() -> int:
    # The process lives for one trial: the collector would only walk the same living objects again and again.
    gc.disable()
    import virtual_time

    return virtual_time.main()
