"""The names of `lm_eval.api.filter` that scripts and task modules import."""

from evalwright.compat.lm_eval.tasks.filters import Filter

__all__ = ["Filter"]
