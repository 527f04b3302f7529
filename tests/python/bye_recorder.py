"""Stands between the coordinator and an endpoint program, and keeps what the program reports at the end.

bye_recorder.py FILE COMMAND...: COMMAND keeps the contract of virtual time on the file descriptors 3 and 4;
its BYE goes to FILE, too.
"""

import os
import struct
import sys
from pathlib import Path

BYE = 6


def read_exactly(source: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(source, size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def pass_on(source: int, sink: int) -> tuple[int, bytes]:
    """Passes a message on; its type and body."""
    head = read_exactly(source, 5)
    length, kind = struct.unpack("<IB", head)
    body = read_exactly(source, length)
    rest = head + body
    while rest:
        rest = rest[os.write(sink, rest) :]
    return kind, body


def main(file: str, command: list[str]) -> None:
    questions, answers = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.dup2(questions[0], 3)
        os.dup2(answers[1], 4)
        os.closerange(5, 64)
        os.execvp(command[0], command)
    os.close(questions[0])
    os.close(answers[1])
    try:
        kind = 0
        while kind != BYE:
            pass_on(3, questions[1])
            kind, body = pass_on(answers[0], 4)
        Path(file).write_bytes(body)
    except EOFError:
        pass  # one of the two has ended; so does the other
    os.close(questions[1])
    _, status = os.wait()
    sys.exit(os.waitstatus_to_exitcode(status))


main(sys.argv[1], sys.argv[2:])
