"""lm-evaluation-harness's tasks as a dialect (`tasks.dialects`): `lm-eval:NAME`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.core.errors import check_known
from evalwright.core.tasks import Task
from evalwright.tasks.dialects import Group, Listed, Rules


class LmEval:
    """The dialect. Everything is imported when it is needed: listing names loads no YAML, and rescoring no task files."""

    right_or_wrong = frozenset({"acc", "acc_norm", "exact_match"})
    keys = frozenset({
        "dataset_path", "dataset_name", "dataset_kwargs", "custom_dataset", "training_split", "validation_split", "test_split",
        "fewshot_split", "output_type", "doc_to_text", "doc_to_target", "doc_to_choice", "process_docs", "process_results", "use_prompt",
        "fewshot_config", "metric_list", "generation_kwargs", "filter_list", "aggregate_metric_list", "task_alias", "group_alias",
    })  # fmt: skip
    """Of its task files, those that ours do not have."""

    def names(self, roots: Sequence[Path]) -> Sequence[Listed]:
        """Tasks, groups, tags and classes of the folders."""
        from evalwright.compat.lm_eval.tasks.index import Index
        from evalwright.compat.lm_eval.tasks.options import Options

        return list(Index(Options(roots=tuple(roots)).folders()).values())

    def load(self, name: str, settings: Mapping[str, Any], *, prompt_format: str, chat: bool) -> list[Task]:
        """The tasks of a name or of a task file. settings: see `tasks.options.Options`."""
        from evalwright.compat.lm_eval.tasks.loading import load_named

        return load_named(name, settings, prompt_format=prompt_format, takes_chat=chat)

    def check_used(self, settings: Mapping[str, Any], tasks: Sequence[Task]) -> None:
        """Raise UnknownName for rows of a task that is none of these."""
        own = [task.name.removeprefix("lm-eval:") for task in tasks]
        check_known("task in samples", settings.get("samples") or (), own, "")

    def groups(self, tasks: Sequence[Mapping[str, Any]]) -> Sequence[Group]:
        """The averages of its group files."""
        from evalwright.compat.lm_eval.tasks.results import dialect_groups

        return dialect_groups(tasks)

    def rules(
        self,
        task: Mapping[str, Any],
        configuration: Mapping[str, Any],
        first: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> Rules:
        """Filters and metrics again, by the record or by the task's files."""
        from evalwright.compat.lm_eval.tasks.rescoring import rules_of

        return rules_of(task, configuration, first.get("doc"), settings)


DIALECT = LmEval()
