"""SEA-HELM's tasks as a dialect (`tasks.dialects`): `sea-helm:SET`, `sea-helm:TASK`, `sea-helm:TASK/LANGUAGE`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.tasks import Task
from evalwright.tasks.dialects import Group, Listed, Rules


class SeaHelm:
    """The dialect. Everything is imported when it is needed."""

    right_or_wrong = frozenset({"normalized_exact_match", "normalized_math_verify_score"})

    def names(self, roots: Sequence[Path]) -> Sequence[Listed]:
        """Tasks, tasks in one language, groups and sets of the folder."""
        from evalwright.compat.sea_helm.config import has_tasks, listed, read_tree, root_of

        root = root_of(roots)
        # Where the tasks of every framework are listed, a folder of another's has none of these.
        return listed(read_tree(root)) if has_tasks(root) else ()

    def load(self, name: str, settings: Mapping[str, Any], *, prompt_format: str, chat: bool) -> list[Task]:
        """The tasks of a name. settings: see `compiling.Options`; `--format text` is the form of base models."""
        from evalwright.compat.sea_helm.compiling import compiled, options_of
        from evalwright.compat.sea_helm.config import chosen, skipped_by, tree_of

        options = options_of(settings)
        options = options.model_copy(update={"base_model": options.base_model or prompt_format == "text"})
        tree = tree_of(options.task_root)
        skip = skipped_by(tree, options.base_model) if options.skip_tasks is None else options.skip_tasks
        found = chosen(tree, name, skip)
        if not found.tasks:
            raise ConfigurationError(
                f"Of the tasks that '{name}' names the folder has none, or all are left out."
            )
        return [compiled(tree, task, language, options, found) for task, language in found.tasks]

    def check_used(self, settings: Mapping[str, Any], tasks: Sequence[Task]) -> None:
        """Raise ConfigurationError for a setting that none of the tasks uses."""
        from evalwright.compat.sea_helm.compiling import check_used

        check_used(settings, tasks)

    def groups(self, tasks: Sequence[Mapping[str, Any]]) -> Sequence[Group]:
        """Its tree: groups of tasks, competencies, languages, everything."""
        from evalwright.compat.sea_helm.aggregation import dialect_groups

        return dialect_groups(tasks)

    def rules(
        self, task: Mapping[str, Any], configuration: Mapping[str, Any], first: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> Rules:  # fmt: skip
        """Scorers and metrics again, by the record and the rows of the folder."""
        from evalwright.compat.sea_helm.compiling import rules_of

        return rules_of(task, configuration, settings)


DIALECT = SeaHelm()
