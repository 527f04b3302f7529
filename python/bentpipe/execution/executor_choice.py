"""The choice of a run's executor: this machine, a cluster, or the hosts of real links."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from bentpipe.execution.executor import Executor, LocalExecutor
from bentpipe.execution.prepared_run import PreparedRun
from bentpipe.execution.remote_executor import remote_executor
from bentpipe.execution.requirements import Requirements
from bentpipe.execution.settings import Settings
from bentpipe.execution.stop_request import StopRequest
from bentpipe.remote.links import Links


@dataclass(frozen=True)
class ExecutorChoice:
    """The properties of a run that decide its executor, and the functions that executors report to."""

    run: PreparedRun
    settings: Settings
    stop: StopRequest
    note: Callable[[str], None]
    executed: Callable[[str, str, str], None]  # trial, hash of its packets, host: before its answer is here

    def opened(self, scratch: Path, pool: ThreadPoolExecutor) -> AbstractContextManager[Executor]:
        """The executor, while it lasts; its files go to `scratch`."""
        if self.run.testbed.is_elsewhere:
            return self._of_links(scratch, pool)
        if self.settings.dask is not None:
            return self._of_cluster(scratch)
        window = self.run.testbed.jobs(self.settings.jobs)
        return nullcontext(LocalExecutor(self.run.variants.stacks, scratch, pool, window, self._stopped))

    def _stopped(self) -> bool:
        return self.stop.made

    def _of_links(self, scratch: Path, pool: ThreadPoolExecutor) -> AbstractContextManager[Executor]:
        links = Links(Path(self.run.manifest.plan.link))
        return remote_executor(links, self.run.variants.stacks, scratch, pool, self._stopped, self.note)

    def _of_cluster(self, scratch: Path) -> AbstractContextManager[Executor]:
        from bentpipe.execution.dask_executor import opened  # Dask is an extra

        assert self.settings.dask is not None
        manifest = self.run.manifest
        wanted = Requirements.of(manifest.plan, self.run.variants, tuple(manifest.stack_folders))
        return opened(
            self.settings.dask,
            wanted,
            self.run.testbed,
            scratch,
            self.note,
            self.executed,
            manifest.executed_on,
        )
