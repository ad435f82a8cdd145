"""TensorBoard event files, written synchronously: a full disk is an error of the writer, not of a thread beside it."""

import itertools
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter

_NUMBERS = itertools.count()  # tells the files of one process and second apart


class EventFile:
    """A new event file in a folder; `purge_step`: values of earlier files from this step on are void."""

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_NUMBERS)}"
        self._file: IO[bytes] = (folder / name).open("wb")
        self._records = RecordWriter(self._file)
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if purge_step is not None:
            start = SessionLog(status=SessionLog.START)
            self._write(Event(wall_time=time.time(), step=purge_step, session_log=start))

    def log(self, scalars: Mapping[str, float], step: int) -> None:
        """Write the values of a step, by tag."""
        self._add(step, *(Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()))

    def report(self, title: str, text: str, values: Mapping[str, float], step: int) -> None:
        """Write a table as one card of text: a card per value would show hundreds of single points."""
        kind = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
        tensor = TensorProto(dtype=DT_STRING, string_val=[text.encode()])
        self._add(step, Summary.Value(tag=title, metadata=kind, tensor=tensor))

    def close(self) -> None:
        self._file.close()

    def _add(self, step: int, *values: Summary.Value) -> None:
        self._write(Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def _write(self, event: Event) -> None:
        self._records.write(event.SerializeToString())
        self._file.flush()
