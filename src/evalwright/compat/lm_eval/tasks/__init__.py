"""lm-evaluation-harness's task files, run unchanged: `lm-eval:NAME`.

    options.py    how they are run: folders, trust, shots, published or corrected
    index.py      every name in a folder, cached; `TaskManager`, for scripts that were written for it
    files.py      YAML with `include` and `!function`; what is not run, and why
    functions.py  the Python that a file names, once its folder is trusted
    config.py     one task's settings, unknown keys refused
    rendering.py  columns, templates and literals as text, targets and choices
    splits.py     the rows of a task
    prompts.py    instruction, shots and question as one text or as messages
    asking.py     what is asked of the model for one row
    filters.py    what is taken from its answers
    scoring.py    what that is worth, metric by metric
    aggregation.py, labels.py, estimates.py  scores as one number with its standard error
    compiling.py  all of it as a Task; classes.py: tasks that are Python classes, by the released package
    rescoring.py  filters and metrics again, over recorded answers
    results.py    averages over groups, and a run's numbers in the published form
    loading.py    the way in: a name as Tasks

Facts of its behaviour are those of release 0.4.13.
"""

from typing import TYPE_CHECKING

from evalwright.core.lazy import lazy_names

if TYPE_CHECKING:
    from evalwright.compat.lm_eval.tasks.index import TaskManager, get_task_dict

__all__ = ["TaskManager", "get_task_dict"]

__getattr__, __dir__ = lazy_names(__name__, {"index": "TaskManager get_task_dict"})
