"""lm-evaluation-harness's task files, run unchanged: `lm-eval:NAME`.

The dialect (`tasks.dialects`) is this module.

    options.py    how they are run: folders, trust, shots, published or corrected
    index.py      every name in a folder, cached; `TaskManager`, for scripts written for it
    task_yaml.py  YAML with `include` and `!function`; what is not run, and why
    functions.py  the Python that a file names, once its folder is trusted
    config.py     one task's settings, unknown keys refused
    rendering.py  columns, templates and literals as text, targets and choices
    splits.py     the rows of a task
    prompts.py    instruction, shots and question as one text or as messages
    row_requests.py  what is asked of the model for one row
    filters.py    what is taken from its answers
    scoring.py    what that is worth, metric by metric
    aggregation.py, labels.py, estimates.py  scores as one number with its standard error
    compiling.py  all of it as a Task
    task_classes.py  tasks that are Python classes, by the released package
    rescoring.py  filters and metrics again, over recorded answers
    results.py    averages over groups, and a run's numbers in the published form
    loading.py    the way in: a name as Tasks

Facts of its behaviour are those of release 0.4.13. Functions load their module on first use:
listing names loads no YAML, and rescoring no task files.
"""

from typing import TYPE_CHECKING

from evalwright.extend import lazy_names

if TYPE_CHECKING:
    from evalwright.compat.lm_eval.tasks.index import TaskManager, get_task_dict

__all__ = ["TaskManager", "get_task_dict"]

right_or_wrong = frozenset({"acc", "acc_norm", "exact_match"})
keys = frozenset({
    "dataset_path", "dataset_name", "dataset_kwargs", "custom_dataset", "training_split",
    "validation_split", "test_split", "fewshot_split", "output_type", "doc_to_text",
    "doc_to_target", "doc_to_choice", "process_docs", "process_results", "use_prompt",
    "fewshot_config", "metric_list", "generation_kwargs", "filter_list",
    "aggregate_metric_list", "task_alias", "group_alias",
})  # fmt: skip
"""Of its task files, those that ours do not have."""

_NAMES = {
    "index": "TaskManager get_task_dict names",
    "loading": "check_used load",
    "rescoring": "rules",
    "results": "groups",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)
