"""Logs finished runs to an experiment tracker: MLflow, W&B, trackio, TensorBoard, or your own.

Servers and keys are in the trackers' own environment variables. A tracker that fails never fails
the run, and a run that is repeated is logged once.
"""

from evalwright.trackers.tracker import Tracker, open_trackers

__all__ = ["Tracker", "open_trackers"]
