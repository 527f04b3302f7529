"""A connection's packets as arrays: the columns of `packets.parquet` that series are computed from.

Times belong to a place. At the side `client`, packets of the client are seen when they are sent, those of the
server when they arrive; a packet that was lost on its way is never seen at the other side. All times of one
figure are those of one side, so that what lies above one another happened together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Direction = Literal["forward", "return"]  # server → client, client → server
Side = Literal["client", "server"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SENDER: dict[Direction, Side] = {"forward": "server", "return": "client"}
OTHER: dict[Direction, Direction] = {"forward": "return", "return": "forward"}
LOST = ("queue_drop", "loss", "not_received")  # the fates of packets that did not arrive


def of_connection(packets: pa.Table, connection: int) -> pa.Table:
    """The packets of one connection, without copies, which count in no metric either."""
    mine = packets.filter(pc.equal(packets["connection"], pa.scalar(connection, pa.int32())))
    return mine.filter(pc.invert(mine["copy"]))


def in_direction(packets: pa.Table, direction: Direction) -> pa.Table:
    """The packets that were sent in `direction`."""
    return packets.filter(pc.equal(packets["direction"], pa.scalar(direction)))


def floats(packets: pa.Table, column: str) -> Floats:
    """A column as floats; NaN where it is null."""
    return np.asarray(packets[column].cast(pa.float64()).to_numpy(), dtype=np.float64)


def ints(packets: pa.Table, column: str, null: int = 0) -> Ints:
    """A column of whole numbers; `null` where it is null."""
    whole = packets[column].cast(pa.int64())
    values = cast("pa.ChunkedArray[Any]", pc.coalesce(whole, pa.scalar(null, pa.int64())))
    return np.asarray(values.to_numpy(), dtype=np.int64)


def texts(packets: pa.Table, column: str) -> npt.NDArray[Any]:
    """A column of words; None where it is null."""
    return np.asarray(packets[column].to_pylist(), dtype=object)


def lost(packets: pa.Table) -> Bools:
    """The packets that did not arrive."""
    return np.isin(texts(packets, "fate").astype(str), LOST)


@dataclass(frozen=True)
class FrameTable:
    """Parallel lists of all packets one after the other: an entry per STREAM frame or ACK range."""

    row: Ints  # of the packet, from 0
    columns: dict[str, Ints]

    def __getitem__(self, column: str) -> Ints:
        return self.columns[column]


def flat(packets: pa.Table, *columns: str) -> FrameTable:
    """The entries of parallel lists, with the rows they stand in."""
    first = packets[columns[0]].combine_chunks()
    row = np.asarray(pc.list_parent_indices(first).to_numpy(zero_copy_only=False), dtype=np.int64)
    values = {
        name: np.asarray(
            pc.list_flatten(packets[name].combine_chunks()).to_numpy(zero_copy_only=False), dtype=np.int64
        )
        for name in columns
    }
    return FrameTable(row, values)


def seen(packets: pa.Table, side: Side) -> Floats:
    """The time at which each packet passed `side`, in seconds; NaN if it was not seen there."""
    own = texts(packets, "sender") == side
    return np.where(own, floats(packets, "sent_s"), floats(packets, "received_s"))


def best_side(packets: pa.Table, direction: Direction) -> Side:
    """The side with the best view of packets of `direction`: their sender's, where it was captured."""
    mine = in_direction(packets, direction)
    sender = SENDER[direction]
    receiver = SENDER[OTHER[direction]]
    return sender if pc.count(mine["sent_s"]).as_py() else receiver
