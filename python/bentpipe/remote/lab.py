"""A laboratory: a link of known properties between two SSH servers on this machine.

Each server is in a network namespace of its own, which nothing leads into but the emulated link of a
scenario. Control connections go through a Unix socket instead, so that they are not on the link. Keys, host
keys and configurations are made anew and are in a folder of the cache: there a host is looked for that is
called as one of the laboratory's, where a file of links names no `ssh_config`.
"""

from __future__ import annotations

import getpass
import json
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from bentpipe import paths
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.plan import scenarios

HOSTS = ("client", "server")
PACKAGE = "openssh-server"
_CONFIG = "ssh_config"
_TIMEOUT_S = 20.0
_SSHD = "127.0.0.1:22"


def folder() -> Path:
    """The folder in which a laboratory keeps its files; it is removed with the laboratory."""
    return paths.cache() / "lab"


def ssh_config(host: str) -> Path | None:
    """The laboratory's SSH configuration for this host; None if it is none of its own."""
    return folder() / _CONFIG if host in map(_alias, HOSTS) else None


def _alias(host: str) -> str:
    return f"bentpipe-lab-{host}"


def is_missing(config: Path) -> bool:
    """Whether the laboratory whose hosts this ssh_config reaches is not running."""
    return not config.exists() or ((config.parent / "pid").exists() and not _is_alive(config.parent))


def lack() -> str | None:
    """The reason why there can be no laboratory here, in words; None if there can."""
    for name, there in (("sshd", _sshd()), ("ssh-keygen", shutil.which("ssh-keygen"))):
        if there is None:
            return f"there is no {name} here: apt install {PACKAGE}"
    if os.geteuid() != 0:
        return "sshd serves nobody in a user namespace: the laboratory needs root"
    return None


def _sshd() -> str | None:
    return shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/sbin")


class LinkLaboratory:
    """A laboratory that runs while the block that opens it lasts."""

    def __init__(self, scenario: str, settings: tuple[str, ...] = (), place: Path | None = None) -> None:
        """Nothing is made yet. UsageError if there can be none, or there is one already."""
        if why := lack():
            raise UsageError(f"no laboratory: {why}")
        self._scenario = scenarios.resolve(scenario, settings).scenario
        self.place = place or folder()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.place.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            if _is_alive(self.place):
                raise UsageError(
                    f"{self.place}: there is a laboratory already", "end it, or use it as it is"
                ) from None
            shutil.rmtree(self.place)
            self.place.mkdir(mode=0o700)
        try:
            self._make_keys()
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the servers and all remaining processes on their hosts."""
        if self._process is not None:
            self._process.kill()  # with it the kernel ends all that is in its namespaces
            self._process.wait()
        shutil.rmtree(self.place, ignore_errors=True)

    def wait(self) -> int:
        """Wait for its end; its exit code."""
        assert self._process is not None
        return self._process.wait()

    def _make_keys(self) -> None:
        for name in ("identity", *(f"{host}_host_key" for host in HOSTS)):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.place / name)]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        public = (self.place / "identity.pub").read_text()
        (self.place / "authorized_keys").write_text(public)
        known = []
        for host in HOSTS:
            kind, key, *_ = (self.place / f"{host}_host_key.pub").read_text().split()
            known.append(f"{_alias(host)} {kind} {key}\n")
            (self.place / f"sshd_config.{host}").write_text(self._server_config(host))
        (self.place / "known_hosts").write_text("".join(known))
        (self.place / _CONFIG).write_text(self._client_config())

    def _server_config(self, host: str) -> str:
        lines = {
            "ListenAddress": _SSHD,
            "HostKey": self.place / f"{host}_host_key",
            "AuthorizedKeysFile": self.place / "authorized_keys",
            "AllowUsers": getpass.getuser(),
            "PermitRootLogin": "prohibit-password",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "UsePAM": "no",
            "StrictModes": "no",  # the folder is this user's alone, those around it may be another's
            "PidFile": "none",
            "LogLevel": "ERROR",
        }
        return "".join(f"{name} {value}\n" for name, value in lines.items())

    def _client_config(self) -> str:
        program = shlex.quote(str(paths.program("bentpipe-remote")))
        blocks = []
        for host in HOSTS:
            door = shlex.quote(str(self.place / f"{host}.door"))
            blocks.append(
                f"Host {_alias(host)}\n"
                f"  ProxyCommand {program} enter {door}\n"
                f"  HostKeyAlias {_alias(host)}\n"
                f"  User {getpass.getuser()}\n"
                f'  IdentityFile "{self.place / "identity"}"\n'
                "  IdentitiesOnly yes\n"
                f'  UserKnownHostsFile "{self.place / "known_hosts"}"\n'
            )
        return "\n".join(blocks)

    def _start(self) -> None:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it, and systemd would have made it
        client, server = (self._host_command(host) for host in HOSTS)
        descriptor = os.memfd_create("scenario", flags=0)
        with os.fdopen(descriptor, "w") as file:
            file.write(json.dumps(self._scenario))
            file.flush()
            os.lseek(descriptor, 0, os.SEEK_SET)
            words = ["shell", "--scenario-fd", str(descriptor), "--server", shlex.join(server), "--", *client]
            self._process = subprocess.Popen(
                [str(paths.program("bentpipe-emu")), *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[descriptor],
                start_new_session=True,
            )
        (self.place / "pid").write_text(str(self._process.pid))
        deadline = time.monotonic() + _TIMEOUT_S
        while not all((self.place / f"{host}.door").exists() for host in HOSTS):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise BentpipeError("the laboratory does not come up", "look at: bentpipe doctor")
            time.sleep(0.05)

    def _host_command(self, host: str) -> list[str]:
        sshd = [str(_sshd()), "-D", "-e", "-f", str(self.place / f"sshd_config.{host}")]
        door = str(self.place / f"{host}.door")
        return [str(paths.program("bentpipe-remote")), "door", door, _SSHD, *sshd]


def _is_alive(place: Path) -> bool:
    """Whether the laboratory in a folder is there."""
    try:
        words = Path("/proc", (place / "pid").read_text(), "cmdline").read_bytes()
    except (OSError, ValueError):
        return False
    return b"bentpipe-emu" in words
