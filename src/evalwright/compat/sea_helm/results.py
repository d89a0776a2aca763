"""SEA-HELM's result folders: `{organisation}/{model}/run_{n}/{configs,results,inferences}`, found,
read, and checked for `runs check`.

Files are named by the last part of a model's name, so the models of two organisations are told
apart by their folders and by the name in the configurations. Nothing in a folder is trusted: names
in it lead to no other folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, takewhile
from pathlib import Path
from typing import Any

from evalwright import Failure
from evalwright.compat.recording import as_mapping, nothing_at, number, open_recorded
from evalwright.compat.sea_helm.config import TASKS, Tree, check, is_name, tree_of
from evalwright.compat.sea_helm.result_rows import REPLY, answer_of, score_of
from evalwright.compat.sea_helm.sea_task import plain
from evalwright.extend import (
    RunCheck,
    RunError,
    TaskError,
    is_within,
    parse_json,
    printable,
    read_json_lines,
    read_yaml,
    to_json,
)

PARTS = ("configs", "results", "inferences")
_RUN = re.compile(r"run_(\d{1,6})")
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?")
_ADDED = frozenset({
    "cleaned_responses", "conversations", "cumulative_logprobs", "custom_ids",
    "error_reports", "errors", "final_judgement", "final_scores", "finish_reasons",
    "function_calls", "individual_scores", "lang_normalized_result",
    "linguistic_phenomenon", "logprobs", "metric_errors", "overall_score",
    "reasoning_contents", "response_tokens", "responses", "result", "score",
    "stop_reasons", "subcategory", "token_usages", "tokenized_prompts", "tool_calls",
})  # fmt: skip
"""Columns that SEA-HELM puts beside those of a row."""
_LONGEST_NAME = 100
"""Bytes of a part of a file's name, of which it has three."""
_NAMED = 3
"""How many tasks a problem names."""
_UNUSED = ("response_tokens", "tokenized_prompts", "logprobs")


@dataclass(frozen=True)
class NumberedRun:
    """One folder `run_{n}`."""

    folder: Path

    @cached_property
    def number(self) -> int:
        """The number in its name."""
        return int(self.folder.resolve().name.removeprefix("run_"))

    @cached_property
    def dated(self) -> Sequence[list[Path]]:
        """Files of configuration, and of results, in the order of the times in their names."""
        matching = [
            self.folder.glob(pattern)
            for pattern in ("configs/*.yaml", "results/*.json")
        ]
        return [sorted(filter(self._has, paths), key=_place) for paths in matching]

    def _has(self, path: Path) -> bool:
        """Whether there is such a file. Raises RunError for a link out of the folder."""
        if there(path) and not is_within(path, self.folder):
            raise RunError(f"'{path}' is a link out of its folder, so it is not read.")
        return there(path)

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The latest configuration, with tasks of earlier ones that it does not have.

        Raises RunError.
        """
        configs = [_config(path) for path in self.dated[0]]
        if not configs:
            raise RunError(
                f"'{self.folder}' has no configs/*.yaml, so nothing is known of its"
                " tasks."
            )
        names = sorted(
            {
                str(as_mapping(config.get("run_args")).get("model_name"))
                for config in configs
            }
        )
        if len(names) > 1:
            raise RunError(
                f"'{self.folder}' has configurations of {len(names)} models,"
                f" {', '.join(map(printable, names))}, whose files have the same names,"
                " so it cannot be told whose answers they are."
            )
        return {
            **configs[-1],
            "tasks": {
                name: task
                for config in configs
                for name, task in config["tasks"].items()
            },
        }

    @property
    def latest(self) -> Mapping[str, Any]:
        """The latest configuration alone. Raises RunError."""
        return _config(self.dated[0][-1]) if self.dated[0] else self.config

    @property
    def arguments(self) -> Mapping[str, Any]:
        """`run_args`: what the command line said."""
        return as_mapping(self.config.get("run_args"))

    @property
    def scoring(self) -> str:
        """By which arithmetic its numbers were made: "corrected" where an export of ours says
        so.
        """
        return str(as_mapping(self.config.get("run_env")).get("scoring") or "published")

    @property
    def model(self) -> str:
        """The model as it was named; without a configuration its folder's name."""
        return str(
            (self.arguments.get("model_name") if self.dated[0] else "")
            or self.folder.parent.name
        )

    @property
    def stamp(self) -> str:
        """When the latest of its evaluations began, by the names of its files."""
        return max((_place(path)[0] for path in chain(*self.dated)), default="")

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each task and language that this run should have."""
        skipped = self.arguments.get("skip_task")
        for name, task in self.config["tasks"].items():
            most = task.get("max_n_runs")
            left_out = isinstance(skipped, list) and name in skipped
            if not left_out and not (isinstance(most, int) and self.number >= most):
                yield from ((name, language) for language in task["languages"])

    @cached_property
    def _results(self) -> list[Mapping[str, Any]]:
        results = []
        for path in self.dated[1]:
            with open_recorded(path) as file:
                results.append(parse_json(file.read(), str(path)))
            if not isinstance(results[-1], dict):
                raise RunError(
                    f"{path} is not a mapping of languages: SEA-HELM did not write it."
                )
        return results

    def numbers(self, name: str, language: str) -> Mapping[str, Any]:
        """What its latest results say of a task; empty where they say nothing. Raises RunError."""
        numbers: Mapping[str, Any] = {}
        for file_results in self._results:
            for key in (language, self.config["tasks"][name]["competency"], name):
                file_results = as_mapping(file_results.get(key))
            numbers = file_results or numbers
        return numbers

    def total(self) -> float | None:
        """The number over everything of its last results."""
        return number(self._results[-1].get("total")) if self._results else None

    def file(self, name: str, language: str, turn: int = 0) -> Path:
        """A task's file of samples, or of the replies in a turn alone."""
        return file_of(
            self.folder, self.model, name, language, self.config["tasks"][name], turn
        )

    def lines(self, name: str, language: str) -> int:
        """How many samples its file has, or the replies alone."""
        for path in filter(
            self._has, (self.file(name, language, turn) for turn in (0, 1))
        ):
            with open_recorded(path) as file:
                return sum(line.endswith(b"\n") for line in file)
        return 0

    def rows(self, name: str, language: str) -> list[dict[str, Any]]:
        """A task's samples with what it made of them; without that file the replies alone.

        Raises RunError.
        """
        if self._has(path := self.file(name, language)):
            return [
                {key: row[key] for key in row if key not in _UNUSED}
                for _, _, row in read_json_lines(path)
            ]
        rows: list[dict[str, Any]] = []
        for path in takewhile(
            self._has, (self.file(name, language, turn) for turn in count(1))
        ):
            for index, (_, _, row) in enumerate(read_json_lines(path)):
                rows += [{}] if index == len(rows) else []
                for key in (*REPLY, "errors", "token_usages"):
                    rows[index].setdefault(key, []).append(row.get(key))
        return rows

    @property
    def files(self) -> list[Path]:
        """All that was read of it."""
        return [
            *chain(*self.dated),
            *filter(self._has, (self.file(*pair) for pair in self.pairs())),
        ]


def _config(path: Path) -> Mapping[str, Any]:
    try:
        config: Mapping[str, Any] = plain(read_yaml(path, "configuration").value)
        if not isinstance(tasks := config.get("tasks"), Mapping):
            raise TaskError(
                f"{path} has no mapping of tasks: SEA-HELM did not write it."
            )
        check(TASKS, tasks, str(path))
    except TaskError as error:
        raise RunError(str(error)) from None
    for name, task in tasks.items():
        check_names(
            path, name, task.get("aggregation_group") or name, *task["languages"]
        )
    return config


def check_names(where: Path, *names: Any) -> None:
    """Raise RunError for a name that is none of a file. where: what names it."""
    for name in names:
        if (
            not isinstance(name, str)
            or not is_name(name)
            or len(name.encode("utf-8", "replace")) > _LONGEST_NAME
        ):
            raise RunError(
                f"{where} names '{printable(str(name))}', which is no name of a file."
            )


def there(path: Path) -> bool:
    """Whether there is such a file; a name that is too long is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def file_of(
    run: Path,
    model: str,
    name: str,
    language: str,
    task: Mapping[str, Any],
    turn: int = 0,
) -> Path:
    """Where a run has a task's samples, or the replies in a turn alone. task: its configuration."""
    file_stem = "_".join([model.rpartition("/")[2], name, language])
    ending = f"_turn{turn}_batch_response" if turn else ""
    return (
        run
        / "inferences"
        / language
        / (task.get("aggregation_group") or name)
        / f"{file_stem}{ending}.jsonl"
    )


def data_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as it was before SEA-HELM put its columns beside."""
    return {key: value for key, value in row.items() if key not in _ADDED}


def _folders(path: Path) -> Iterator[Path]:
    """The folders of numbered runs in a folder, or that folder itself."""
    for folder, inner, _ in os.walk(path):
        place = Path(folder)
        name = place.resolve().name if place == path else place.name
        if _RUN.fullmatch(name) and {*inner} & {*PARTS}:
            inner.clear()
            yield place
        inner.sort()


def is_results(folder: Path) -> bool:
    """Whether a folder has, or is, a numbered run."""
    return any(True for _ in _folders(folder))


def find_runs(path: Path) -> list[list[NumberedRun]]:
    """The numbered runs of each model in a folder: a results folder, a model's folder, or one
    run's. Raises RunError where there is none.
    """
    if not path.is_dir():
        raise nothing_at(
            path, "Name a results folder of SEA-HELM, or the folder of one model in it."
        )
    runs_by_model: dict[tuple[Path, str], list[NumberedRun]] = {}
    for run in map(NumberedRun, _folders(path)):
        try:
            model = run.model
        except RunError:  # said when the run is read
            model = str(run.folder)
        runs_by_model.setdefault((run.folder.parent, model), []).append(run)
    if not runs_by_model:
        raise RunError(
            f"'{path}' has no results of SEA-HELM: no folder run_0 with configs,"
            " results and inferences."
        )
    return [sorted(runs, key=lambda run: run.number) for runs in runs_by_model.values()]


def check_one_scoring(runs: Sequence[NumberedRun]) -> None:
    """Raise RunError where the numbered runs of a model are not all published, or all corrected:
    what is over them would be neither.
    """
    by_scoring: dict[str, list[str]] = {}
    for run in runs:
        by_scoring.setdefault(run.scoring, []).append(f"run_{run.number}")
    if len(by_scoring) > 1:
        which = " and ".join(
            f"{', '.join(names)} ({scoring})" for scoring, names in by_scoring.items()
        )
        raise RunError(
            f"'{runs[0].folder.parent}' has runs of both scorings, {which}, whose"
            " numbers are not made in the same way. Give each scoring a folder of its"
            " own."
        )


def _place(path: Path) -> tuple[str, str]:
    """The time in a file's name, and the name."""
    stamp = _STAMP.search(path.name)
    return stamp[0] if stamp else "", path.name


# -- what its integrity notebook looks for, in every line instead of the first ---------


def check_folder(path: Path, settings: Mapping[str, Any]) -> list[RunCheck]:
    """Each numbered run in a folder. settings: `task_root`, SEA-HELM's folder of today, for what is
    stale. Raises UsageError.
    """
    tree = tree_of(settings["task_root"]) if settings.get("task_root") else None
    return [
        _checked(run, model_runs, tree, path)
        for model_runs in find_runs(path)
        for run in model_runs
    ]


def _checked(
    run: NumberedRun, model_runs: list[NumberedRun], tree: Tree | None, path: Path
) -> RunCheck:
    name = str(run.folder.relative_to(path)) if run.folder != path else run.folder.name
    problems: dict[str, dict[str, str]] = {}
    try:
        pairs = list(run.pairs())
        for pair in pairs:
            problem, details = _problem(run, model_runs, tree, pair)
            if problem:
                problems.setdefault(problem, {})["/".join(pair)] = details
    except RunError as error:
        return RunCheck(name, run.folder.parent.name, 0, 0, (f"damaged: {error}",))
    problems_found = [
        *(f"{problem}: {_listed(names)}" for problem, names in problems.items()),
        *([] if run.dated[1] else ["no results/*.json"]),
    ]
    n_complete = len(pairs) - sum(map(len, problems.values()))
    notes = (
        ()
        if tree
        else (
            (
                "not compared with the tasks of today: name SEA-HELM's folder with"
                " --task-root"
            ),
        )
    )
    return RunCheck(
        name, run.model, n_complete, len(pairs), tuple(problems_found), notes
    )


def _listed(reason_by_name: Mapping[str, str]) -> str:
    """The first few names, each with the reason if there is one, and how many more there are."""
    named = [f"{name} ({why})" if why else name for name, why in reason_by_name.items()]
    further = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"{', '.join(named[:_NAMED])}{further}"


def _problem(
    run: NumberedRun,
    model_runs: list[NumberedRun],
    tree: Tree | None,
    pair: tuple[str, str],
) -> tuple[str, str]:
    """What is wrong with a task of a run, and how far; "" for nothing."""
    task, language = pair
    if "error" in run.numbers(*pair):
        return "its code raised, scored 0", ""
    if not there(run.file(*pair)):
        return "tasks missing", ""
    rows = run.rows(*pair)
    most = max(
        [
            len(rows),
            *(
                model_run.lines(*pair)
                for model_run in model_runs
                if pair in set(model_run.pairs())
            ),
        ]
    )
    if len(rows) < most:
        return "samples missing", f"{most - len(rows):,} of {most:,}"
    metric = str(run.config["tasks"][task]["metric"])
    if errors := sum(isinstance(answer_of(row), Failure) for row in rows):
        return "failures", f"{errors:,} of {len(rows):,}"
    without = sum(isinstance(score_of(row, metric), Failure) for row in rows)
    if without or not rows:
        return "not scored", f"{without:,} of {len(rows):,}"
    if twice := len(rows) - len({to_json(data_of(row)) for row in rows}):
        return "samples twice", f"{twice:,} of {len(rows):,}"
    if run.dated[1] and number(run.numbers(*pair).get(metric)) is None:
        return "no number in results", ""
    if tree is None:
        return "", ""
    if task not in tree.tasks or language not in tree.languages(task):
        return "not of today", "no such task"
    configs = (run.config["tasks"][task], tree.tasks[task])
    then, today = (
        str(as_mapping(config.get("metadata")).get("version")) for config in configs
    )
    return (
        ("not of today", f"version {then}, now {today}") if then != today else ("", "")
    )
