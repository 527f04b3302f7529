"""What the executor of a cluster makes of what its workers are and say; no cluster is started."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections import deque
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock, PropertyMock

import pytest
from children import PATIENCE_S
from distributed.comm.core import CommClosedError

from bentpipe.execution import dask_worker
from bentpipe.execution.dask_cluster import DaskSettings
from bentpipe.execution.dask_executor import DaskExecutor, _Attempt
from bentpipe.execution.dask_worker import TrialWorker, UnfitWorker
from bentpipe.execution.executor import LostExecutor
from bentpipe.execution.kit import Kit
from bentpipe.execution.requirements import Requirements
from bentpipe.execution.scheduler import Scheduler
from bentpipe.testbed import EMU, SIM

pytestmark = pytest.mark.usefixtures("fake_sim")


class IdleClient:
    """A client of a cluster whose workers do nothing."""

    status = "running"

    def __init__(self, *resources: dict[str, int]) -> None:
        self.resources = resources

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        workers = {str(place): {"nthreads": 4, "resources": one} for place, one in enumerate(self.resources)}
        return {"workers": workers}


def executor(testbed: Any, *resources: dict[str, int], workers: int = 0) -> tuple[DaskExecutor, list[str]]:
    notes: list[str] = []
    wanted = Requirements("", (), (), (), (), {}, Kit({}))
    client: Any = IdleClient(*resources)
    made = DaskExecutor(client, wanted, testbed, notes.append, lambda *_: None, {}, DaskSettings(workers))
    client.resources = [{made.name if key == "fit" else key: one[key] for key in one} for one in resources]
    return made, notes


def test_a_worker_whose_program_is_gone_gives_itself_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a trial begins, or when one could not; what it was asked for goes back."""
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path))
    monkeypatch.setattr(dask_worker, "sync", lambda _, work, *given: asyncio.run(work(*given)))
    program = tmp_path / "sim"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    plugin = TrialWorker("run", Requirements("sim", (), (), (), (), {}, Kit.here([program], [])))
    worker = Mock(address="tcp://w:1", contact_address="tcp://w:1")
    worker.scheduler.set_resources = AsyncMock()
    plugin._worker, plugin._kit, plugin._given_up = worker, None, False
    plugin._check_programs()
    assert not worker.method_calls
    program.unlink()
    for _ in range(2):  # another trial was on its way
        with pytest.raises(UnfitWorker, match="sim is gone"):
            plugin._check_programs()
    worker.scheduler.set_resources.assert_awaited_with(resources={"run": 0}, worker="tcp://w:1")
    ((_, said), _) = worker.log_event.call_args_list[0]
    assert worker.log_event.call_count == 1 and said["unfit"] == f"{program} is gone since the run began"


def test_a_trial_that_an_unfit_worker_gives_back_runs_elsewhere() -> None:
    """As often as need be, without blame."""
    made, _ = executor(SIM, {"fit": 1})
    send = made._send = Mock()  # type: ignore[method-assign]
    task = Mock()
    task.result.side_effect = pickle.loads(pickle.dumps(UnfitWorker("sim is gone")))
    attempt = _Attempt(Mock(), Path(), Future())
    for _ in range(9):
        made._attempts["key"] = attempt
        made._done("key", task)
    assert send.call_count == 9 and not attempt.answer.done()


def test_a_scheduler_that_ends_while_a_result_is_fetched_is_gone() -> None:
    made, _ = executor(SIM, {"fit": 1})
    attempt = made._attempts["key"] = _Attempt(Mock(), Path(), Future())
    made._done("key", Mock(result=Mock(side_effect=CommClosedError("in <TCP (closed) Client->Scheduler>"))))
    with pytest.raises(LostExecutor, match="the Dask scheduler is gone"):
        attempt.answer.result(timeout=0)


def test_only_workers_that_say_so_run_trials_in_real_time() -> None:
    fit = {"fit": 4}
    assert executor(SIM, fit, fit, {})[0].window == 3 * 8
    assert executor(EMU, fit, {**fit, "real-time": 2}, {"real-time": 8})[0].window == 2
    none, notes = executor(EMU, fit)
    assert none.window == 0
    assert notes == ["no worker may run trials in real time: start it with --resources real-time=1"]


def test_a_run_whose_scheduler_is_gone_does_not_wait_for_workers() -> None:
    waiting, _ = executor(SIM)
    assert waiting.window == 0
    waiting._client.status = "closed"
    with pytest.raises(LostExecutor, match="the Dask scheduler is gone"):
        _ = waiting.window


def test_a_run_ends_once_none_of_its_own_workers_can_run_trials_any_more() -> None:
    """Others will not join; those of a scheduler may."""
    for workers in (0, 2):
        made, notes = executor(SIM, {}, {}, workers=workers)
        for place in "01":
            assert made.window == 0
            made._looked = 0.0
            made._event((0.0, {"worker": place, "host": "h", "unfit": "sim is gone"}))
        assert len(notes) == 3
        if not workers:
            assert made.window == 0
            continue
        with pytest.raises(LostExecutor, match="none of the 2 workers can run trials any more: sim is gone"):
            _ = made.window
        client: Any = made._client
        client.resources = client.resources[:1]  # the other has died, and is started again
        made._looked = 0.0
        assert made.window == 0


def test_a_run_asks_for_its_workers_also_when_no_trial_is_left_to_hand_out() -> None:
    """Those that run may wait for workers that are gone."""
    scheduler = Scheduler.__new__(Scheduler)
    scheduler._queue = deque()
    gone: Any = Mock()
    type(gone).window = PropertyMock(side_effect=LostExecutor("gone"))
    with pytest.raises(LostExecutor, match="gone"):
        scheduler._hand_out(gone, {Future(): Mock()})


def test_a_trial_that_comes_back_after_the_end_of_a_run_is_not_sent_again() -> None:
    made, _ = executor(SIM, {"fit": 1})
    client: Any = made._client
    client.cancel = Mock()
    attempt = _Attempt(Mock(), Path(), Future())
    made.kill()
    made._again(attempt)
    assert attempt.answer.result().killed and not made._attempts


def test_a_host_that_hangs_holds_up_no_other() -> None:
    made, _ = executor(SIM, {}, {})
    hung, begun = threading.Event(), threading.Event()

    def run(step: Any, *_: Any, workers: list[str]) -> dict[str, list[str]]:
        if workers == ["0"]:
            hung.wait()
        elif step is dask_worker.begin:
            begun.set()
        return {workers[0]: []}

    client: Any = made._client
    client.run = run
    try:
        for place, host in (("0", "a"), ("1", "b")):
            made._event((0.0, {"worker": place, "host": host, "lacks": 1}))
        assert begun.wait(PATIENCE_S)
    finally:
        hung.set()
        made.end()
