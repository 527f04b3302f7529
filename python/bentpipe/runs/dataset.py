"""The trials of many runs as one Arrow dataset in parts, of which the `records.parquet` of each run is one.

Nothing is read before it is asked for, and then by columns and by groups of rows, so that all may be more
than memory holds. Where it fits, the table that `bentpipe.runs.several.trials` makes is simpler.

Importing this takes long, as `table` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from bentpipe.errors import BentpipeError
from bentpipe.runs import manifest
from bentpipe.runs.several import names

_OF_RUNS = pa.schema([("run", pa.string()), ("started", pa.string())])


def open_dataset(folders: Iterable[Path]) -> ds.Dataset:
    """The trials of the finished runs in `folders`: the columns of `records.parquet`, and `run`, the run's
    name, and `started`, when it began (UTC, as in its manifest). Values that a run does not have are null.
    BentpipeError, naming the folder, if one holds no finished run, or two runs have incompatible types in a
    column.
    """
    places = list({folder.resolve(): folder for folder in folders}.values())
    if not places:
        raise BentpipeError("no runs are given", "give the folders of runs")
    columns, parts, form, here = _OF_RUNS, [], ds.ParquetFileFormat(), LocalFileSystem()
    for folder, name in zip(places, names(places), strict=True):
        file = (folder / "records.parquet").absolute()
        known = (ds.field("run") == name) & (ds.field("started") == manifest.read(folder).started)
        try:
            columns = pa.unify_schemas([columns, pq.read_schema(file)], promote_options="permissive")
        except OSError as error:
            hint = "it is written when a run is complete: continue it, or leave it out"
            raise BentpipeError(f"{file}: cannot be read: {error.strerror or error}", hint) from error
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise BentpipeError(f"{file}: {error}", "read it apart from the others") from error
        parts.append(form.make_fragment(str(file), filesystem=here, partition_expression=known))
    return ds.FileSystemDataset(parts, columns, form, filesystem=here)
