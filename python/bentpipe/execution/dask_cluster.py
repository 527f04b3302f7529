"""A cluster of Dask: one of worker processes on this machine that lives as long as the run, or one that
exists already.

One that is started here listens on the loopback address alone, and speaks TLS with a key that is made for the
run: nobody else on the machine can give it work.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe.errors import BentpipeError, UsageError
from bentpipe.testbed import Testbed

if TYPE_CHECKING:
    from distributed import Client

EXTRA = 'install it with: pip install "bentpipe[dask]"'
_CONNECT_S = 15
_DISCONNECT_S = 5  # the time that a scheduler gets to disconnect
_CONFIG = {
    # A trial is blamed for the death of its worker, and so are those that waited there.
    "distributed.scheduler.allowed-failures": 100,
    # Settings of numeric libraries that Dask makes, and trials do not need.
    "distributed.nanny.pre-spawn-environ": {},
    # Dask watches itself many times a second, which takes more than handing out trials does.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # Workers hold answers alone; what trials take, their programs do.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}


@dataclass(frozen=True)
class DaskSettings:
    """The settings of a cluster: `workers` of its own, or that of a scheduler, and what stays on it."""

    workers: int = 0
    scheduler: str = ""  # an address, or a file that a scheduler wrote
    tls: Mapping[str, str] | None = None  # ca, cert, key → the file
    traces_stay: Path | None = (
        None  # the folder, on workers, in which traces stay; None: they are copied here
    )

    @property
    def options(self) -> list[str]:
        """The words of a command line that name this cluster."""
        of_cluster = ["--workers", str(self.workers)] if self.workers else ["--scheduler", self.scheduler]
        tls = [word for part, file in (self.tls or {}).items() for word in (f"--tls-{part}", file)]
        stay = ["--traces-stay", str(self.traces_stay)] if self.traces_stay else []
        return ["--executor", "dask", *of_cluster, *tls, *stay]

    @property
    def address(self) -> str:
        """The address of the scheduler; UsageError if a file names none."""
        file = Path(self.scheduler)
        if not self.scheduler or not file.is_file():
            return self.scheduler
        try:
            return str(json.loads(file.read_text())["address"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"--scheduler {file}: it does not say where a Dask scheduler is ({error!r})",
                f"have one write it: dask scheduler --scheduler-file {file}",
            ) from None

    def is_open(self) -> bool:
        """Whether its scheduler accepts work from anyone who can reach it over the network."""
        if not self.scheduler:
            return False
        scheme, _, place = self.address.rpartition("://")
        host = place.rpartition(":")[0].strip("[]")
        try:
            local = ipaddress.ip_address(host).is_loopback
        except ValueError:
            local = host == "localhost"
        return scheme in ("", "tcp") and not local


def require(settings: DaskSettings) -> None:
    """BentpipeError if Dask is not installed, or the scheduler's address is not valid."""
    try:
        import distributed  # noqa: F401
        from distributed.comm.addressing import get_address_host_port
    except ModuleNotFoundError as error:
        raise BentpipeError(f"--executor dask: the package {error.name} is missing", EXTRA) from None
    if not settings.scheduler:
        return
    try:
        host, _ = get_address_host_port(settings.address)
        if not host:
            raise ValueError("missing host")
    except ValueError as error:
        raise UsageError(
            f"--scheduler {settings.scheduler}: neither a file nor an address: {error}",
            "write it like tcp://127.0.0.1:8786",
        ) from None


@contextlib.contextmanager
def connected(settings: DaskSettings, testbed: Testbed, scratch: Path) -> Iterator[Client]:
    """A client of the cluster. A cluster that was started for it ends with it."""
    require(settings)
    import dask
    from distributed import Client

    for name in [one for one in logging.root.manager.loggerDict if one.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # workers appear and disappear: that is normal
    with dask.config.set(_CONFIG), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.ExitStack() as stack:
            reached: dict[str, Any] = _reached(settings)
            if settings.workers:
                reached = {"address": stack.enter_context(_own(settings.workers, testbed, scratch))}
            try:
                client = Client(**reached, timeout=_CONNECT_S, set_as_default=False)
            except (OSError, ValueError, TypeError) as error:
                raise BentpipeError(
                    f"--scheduler: no Dask scheduler answers at {settings.scheduler}: {error}",
                    "start one with: dask scheduler --host 127.0.0.1 --port 8786",
                ) from error
            stack.callback(client.close, timeout=_DISCONNECT_S)
            yield client


@contextlib.contextmanager
def _own(workers: int, testbed: Testbed, scratch: Path) -> Iterator[Any]:
    from distributed import LocalCluster, Security

    from bentpipe.execution.dask_worker import REAL_TIME

    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        protocol="tls://",
        security=Security.temporary(),
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        local_directory=str(scratch),
        memory_limit=0,
        resources={REAL_TIME: 1} if testbed.needs_processors_in_time else None,
        silence_logs=logging.CRITICAL,
    )
    try:
        yield cluster
    finally:
        cluster.close(timeout=_DISCONNECT_S)


def _reached(settings: DaskSettings) -> dict[str, Any]:
    """The arguments by which a client finds an existing scheduler."""
    import dask
    from distributed import Security

    place: dict[str, Any] = {"address": settings.scheduler}
    if Path(settings.scheduler).is_file():
        place = {"scheduler_file": settings.scheduler}
    if settings.tls is None:
        if settings.scheduler.startswith("tls://") and not dask.config.get("distributed.comm.tls.ca-file"):
            raise UsageError(
                f"--scheduler {settings.scheduler}: TLS needs certificates",
                "add --tls-ca, --tls-cert and --tls-key, or configure Dask (distributed.comm.tls)",
            )
        return place  # as Dask's own configuration has it
    for option, file in settings.tls.items():
        if not Path(file).is_file():
            raise UsageError(f"--tls-{option}: there is no file {file}", "name a PEM file")
    security = Security(
        tls_ca_file=settings.tls["ca"],
        tls_client_cert=settings.tls["cert"],
        tls_client_key=settings.tls["key"],
        require_encryption=True,
    )
    return {**place, "security": security}
