"""Access to a host: by OpenSSH's client, behind which Bentpipe's own program is started.

The ssh that the user has is used as it is, with its configuration, agent and keys; host keys are verified,
always. The program goes by its hash: it is brought where it is absent, and hashed again before it is run.
"""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import subprocess
import threading
from pathlib import Path

from bentpipe import paths
from bentpipe.errors import BentpipeError
from bentpipe.remote.links import LinkHost

_GREETING_S = 30.0
_BRING_S = 600.0
_ABSENT = "bentpipe-remote: absent"
# Both run under the user's shell there, whichever that is, so each is one word in quotes for it. Arguments
# are hashes and numbers.
_START = (
    'd="${XDG_CACHE_HOME:-$HOME/.cache}/bentpipe-remote"; p="$d/$1/bentpipe-remote"; '
    'if [ -x "$p" ] && [ "$(sha256sum < "$p")" = "$1  -" ]; then exec "$p" host --ahead-ms "$2"; '
    f'else echo "{_ABSENT}"; fi'
)
_BRING = (
    'umask 077; d="${XDG_CACHE_HOME:-$HOME/.cache}/bentpipe-remote/$1"; mkdir -p "$d" && '
    'cat > "$d/.partial" && [ "$(sha256sum < "$d/.partial")" = "$1  -" ] && '
    'chmod 700 "$d/.partial" && mv "$d/.partial" "$d/bentpipe-remote" && echo brought'
)


class HostGone(BentpipeError):
    """A connection to a host that broke, or cannot be made."""


class SshHost:
    """A host as ssh knows it."""

    def __init__(self, where: str, host: LinkHost, links: Path) -> None:
        """`where` is what errors call it; `links` is the folder that paths count from."""
        self.where, self._host, self._links = where, host, links

    def greet(self) -> tuple[subprocess.Popen[bytes], str]:
        """A process of ssh behind which the host's program has answered, and that program's hash. HostGone,
        with why, if there is none.
        """
        program = paths.program("bentpipe-remote").read_bytes()
        digest = hashlib.sha256(program).hexdigest()
        for _ in range(2):
            process = self._ssh(_START, digest, str(self._host.clock_ahead_ms))
            first = self._first_line(process)
            if first.strip() != _ABSENT.encode():
                return process, digest
            process.wait()
            self._bring(program, digest)
        raise HostGone(f"{self.where}: Bentpipe's program does not stay there", "is there room in ~/.cache?")

    def _bring(self, program: bytes, digest: str) -> None:
        process = self._ssh(_BRING, digest)
        try:
            out, err = process.communicate(program, timeout=_BRING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        if b"brought" not in out:
            raise HostGone(f"{self.where}: Bentpipe's program cannot be brought there: {_last(err)}")

    def _first_line(self, process: subprocess.Popen[bytes]) -> bytes:
        """The answer to the first question; HostGone if there is none."""
        timer = threading.Timer(_GREETING_S, process.kill)
        timer.start()
        assert process.stdin is not None and process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b'{"id": 0, "do": "time"}\n')
                process.stdin.flush()
            for line in process.stdout:  # a shell there may have a greeting of its own
                if line.startswith(b"{") or line.strip() == _ABSENT.encode():
                    return line
        finally:
            timer.cancel()
        process.wait()
        assert process.stderr is not None
        why = _last(process.stderr.read()) or f"ssh ended with {process.returncode}"
        raise HostGone(f"{self.where} cannot be reached: {why}", f"try: {shlex.join(self._words('true'))}")

    def _ssh(self, script: str, *arguments: str) -> subprocess.Popen[bytes]:
        there = shlex.join(["exec", "sh", "-c", script, "sh", *arguments])
        return subprocess.Popen(
            self._words(there),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=-1,
            start_new_session=True,  # a Ctrl-C is for this program alone
        )

    def _words(self, command: str) -> list[str]:
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ControlPath": "none",  # a connection of its own: its end says that the host ends all
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "ClearAllForwardings": "yes",
            "PermitLocalCommand": "no",
            "ConnectTimeout": "15",
        }
        words = ["ssh", "-T", *(f"-o{name}={value}" for name, value in options.items())]
        if self._host.ssh_config is not None:
            words += ["-F", str(self._links / Path(self._host.ssh_config).expanduser())]
        if self._host.port is not None:
            words += ["-p", str(self._host.port)]
        if self._host.user is not None:
            words += ["-l", self._host.user]
        return [*words, "--", self._host.host, command]


def _last(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
