"""The files that a trial over a link has left on its hosts, copied to this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

from bentpipe.execution.jobs import LocalTrial
from bentpipe.execution.remote_programs import CLIENT, FOLDER, SERVER, sender
from bentpipe.remote.session import LinkSession
from bentpipe.runs.trial_files import within
from bentpipe.stacks.model import ROLES

_NAMED = 3  # of files that stay on a host


class LeftFiles:
    """The files of a trial on both hosts."""

    def __init__(self, session: LinkSession, trial: LocalTrial, scratch: Path) -> None:
        """Files for `bentpipe-remote record` are put into `scratch`, the others into the trial's folder."""
        self._session, self._trial, self._scratch = session, trial, scratch
        self.details: list[str] = []  # what is to be said beside the verdict

    def fetch(self, captures: bool) -> None:
        """Copy the files to this machine."""
        self._fetch_downloads()
        for role in ROLES:
            self._fetch_others(role, captures)

    def _fetch_downloads(self) -> None:
        """Fetch the files that arrived. A file that is the served one is not copied once more."""
        host = self._session.on(SERVER if sender(self._trial) == CLIENT else CLIENT)
        served = {}
        for path in self._trial.flows[0].requests:
            file = self._trial.www / path.removeprefix("/")
            served[hashlib.sha256(file.read_bytes()).hexdigest()] = file
        downloads = self._scratch / "0" / "downloads"
        downloads.mkdir(parents=True)
        for found in host.ask("list", path=f"{FOLDER}/downloads")["files"]:
            to = within(downloads, found["path"])
            to.parent.mkdir(parents=True, exist_ok=True)
            if found["sha256"] in served:
                to.write_bytes(served[found["sha256"]].read_bytes())
            else:
                to.write_bytes(host.get(f"{FOLDER}/downloads/{found['path']}"))

    def _fetch_others(self, role: str, captures: bool) -> None:
        """Secrets, the capture, and qlogs."""
        host = self._session.on(role)
        listed = host.ask("list", path=FOLDER)
        here = {one["path"] for one in listed["files"]}
        if listed["unreadable"]:
            self.details.append(left_there(role, listed["unreadable"]))
        if role == CLIENT and "client.keys" in here:
            (self._scratch / "0" / "client.keys").write_bytes(host.get(f"{FOLDER}/client.keys"))
        if captures:
            (self._scratch / f"{role}.capture").write_bytes(host.get(f"{FOLDER}/capture"))
        for name in sorted(one for one in here if one.startswith("qlog/")):
            to = within(self._trial.folder / "qlog" / role, name.removeprefix("qlog/"))
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(host.get(f"{FOLDER}/{name}"))


def left_there(role: str, names: Collection[str]) -> str:
    """The note on files whose names are not valid text: how many, and the first, named by a host."""
    first = ", ".join(repr(name) for name in sorted(names)[:_NAMED])
    more = ", …" if len(names) > _NAMED else ""
    return f"{len(names)} files of the {role} were left there, whose names are no text: {first}{more}"
