"""What scripts and task modules import of `lm_eval.api.filter`."""

from evalwright.compat.lm_eval.tasks.filters import Filter

__all__ = ["Filter"]
