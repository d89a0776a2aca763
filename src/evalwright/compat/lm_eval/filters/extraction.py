"""The names of `lm_eval.filters.extraction` that scripts and task modules import."""

from evalwright.compat.lm_eval.tasks.filters import (
    Filter,
    MultiChoiceRegexFilter,
    RegexFilter,
    register_filter,
)

__all__ = ["Filter", "MultiChoiceRegexFilter", "RegexFilter", "register_filter"]
