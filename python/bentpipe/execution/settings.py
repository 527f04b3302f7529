"""The settings of an execution."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe.execution.dask_cluster import DaskSettings
from bentpipe.execution.pause import Pause


@dataclass(frozen=True)
class Settings:
    """The settings of an execution. None of them changes a result."""

    jobs: int | None = None  # trials at a time; None: as many as suit the testbed, or a cluster
    dask: DaskSettings | None = None  # the cluster that runs them; None: this machine
    shuffle: bool = False
    pause: Pause | None = None
    silence_s: int = 30
    awake: bool = False  # in real time: keep idle processors from sleeping
