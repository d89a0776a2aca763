"""TensorBoard: writes event files to a folder named after the run.

That folder is inside `where`, else $TENSORBOARD_LOGDIR, else "tensorboard".
"""

from __future__ import annotations

import os
from pathlib import Path

from evalwright.trackers.facts import TrackedRun


def log(run: TrackedRun, where: str, before: str) -> str:
    """Write the run's numbers as scalars and its settings as a text, replacing an earlier log."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.text.metadata import create_summary_metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util.tensor_util import make_tensor_proto

    folder = Path(
        where or os.environ.get("TENSORBOARD_LOGDIR") or "tensorboard",
        f"{run.name}-{run.key[:8]}",
    )
    for old in folder.glob("events.out.tfevents.*") if before else ():
        old.unlink()
    rows = "".join(
        f"| {name} | {text.replace('|', '/')} |\n"
        for name, text in run.settings.items()
    )
    table = make_tensor_proto(f"| setting | value |\n| --- | --- |\n{rows}".encode())
    values = [
        Summary.Value(tag=name, simple_value=number)
        for name, number in {**run.numbers, **run.usage}.items()
    ]
    metadata = create_summary_metadata("settings", "")
    values.append(Summary.Value(tag="settings", metadata=metadata, tensor=table))
    writer = EventFileWriter(str(folder))
    writer.add_event(
        Event(wall_time=run.ended.timestamp(), step=0, summary=Summary(value=values))
    )
    writer.close()
    return folder.name
