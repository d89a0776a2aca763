"""SEA-HELM: its task folders as a dialect (`tasks.dialects`: `sea-helm:SET`, `sea-helm:TASK`,
`sea-helm:TASK/LANGUAGE`), its result folders, and what its command line becomes.

The dialect is this module. Its functions load their module on first use.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.extend import TaskGroup, lazy_names

takes_limit = True
takes_among_others = True
right_or_wrong = frozenset({"normalized_exact_match", "normalized_math_verify_score"})
__getattr__, __dir__ = lazy_names(
    __name__, {"compiling": "check_used load rules", "naming": "names"}
)


def groups(tasks: Sequence[Mapping[str, Any]]) -> Sequence[TaskGroup]:
    """Its tree: groups of tasks, competencies, languages, everything."""
    from evalwright.compat.sea_helm.aggregation import dialect_groups

    return dialect_groups(tasks)
