"""`evalwright runs check` of SEA-HELM's result folders: what its integrity notebook looks for, in every line instead of the first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.analysis.run_checks import Checked, listed
from evalwright.compat.sea_helm.config import Tree, read_tree, root_of
from evalwright.compat.sea_helm.files import NumberedRun, find_runs, mapping, there
from evalwright.core.errors import RunError


def check_folder(path: Path, settings: Mapping[str, Any]) -> list[Checked]:
    """Each numbered run in a folder. settings: `task_root`, SEA-HELM's folder of today, for what is stale. Raises UsageError."""
    roots = [Path(one) for one in settings.get("task_root") or ()]
    tree = read_tree(root_of(roots)) if roots else None
    return [_checked(run, several, tree, path) for several in find_runs(path) for run in several]


def _checked(run: NumberedRun, several: list[NumberedRun], tree: Tree | None, path: Path) -> Checked:
    name = str(run.folder.relative_to(path)) if run.folder != path else run.folder.name
    problems: dict[str, list[str]] = {}
    try:
        pairs = list(run.pairs())
        for pair in pairs:
            what, why = _problem(run, several, tree, pair)
            if what:
                problems.setdefault(what, []).append(f"{'/'.join(pair)}{why}")
    except RunError as error:
        return Checked(name, run.folder.parent.name, 0, 0, (f"damaged: {error}",))
    said = [f"{what}: {listed(found)}" for what, found in problems.items()]
    if not run.results:
        said.append("no results/*.json")
    whole = len(pairs) - sum(map(len, problems.values()))
    notes = () if tree else ("not compared with the tasks of today: name SEA-HELM's folder with --task-root",)
    return Checked(name, run.model, whole, len(pairs), tuple(said), notes)


def _problem(
    run: NumberedRun, several: list[NumberedRun], tree: Tree | None, pair: tuple[str, str]
) -> tuple[str, str]:
    task, language = pair
    if "error" in run.numbers(*pair):
        return "its code raised, scored 0", ""
    if not there(run.file(*pair)):
        return "tasks missing", ""
    rows = run.rows(*pair)
    most = max([len(rows), *(one.lines(*pair) for one in several if pair in set(one.pairs()))])
    if len(rows) < most:
        return "samples missing", f" ({most - len(rows):,} of {most:,})"
    without = sum("individual_scores" not in row for row in rows)
    if without or not rows:
        return "not scored", f" ({without:,} of {len(rows):,})"
    if errors := sum(any(one) for row in rows if isinstance(one := row.get("errors"), list)):
        return "failures", f" ({errors:,} of {len(rows):,})"
    if tree is None:
        return "", ""
    now = tree.tasks.get(task)
    if now is None or language not in tree.languages(task):
        return "not of today", " (no such task)"
    then, today = (mapping(one.get("metadata")).get("version") for one in (run.config["tasks"][task], now))
    return ("not of today", f" (version {then}, now {today})") if str(then) != str(today) else ("", "")
