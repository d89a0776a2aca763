"""trackio: logs a run to the project `where`, else $TRACKIO_PROJECT, else "evalwright".

trackio stores it in its own local folder.
"""

from __future__ import annotations

import os

from evalwright.trackers.facts import TrackedRun


def log(run: TrackedRun, where: str, before: str) -> str:
    """Write the run's settings and numbers; a run that was logged before is continued."""
    import trackio

    project = where or os.environ.get("TRACKIO_PROJECT") or "evalwright"
    name = f"{run.name}-{run.key[:8]}"
    quiet = {"embed": False, "auto_log_gpu": False, "auto_log_cpu": False}
    trackio.init(project, name, config=dict(run.settings), resume="allow", **quiet)
    try:
        trackio.log({**run.numbers, **run.usage}, step=0)
    finally:
        trackio.finish()
    return name
