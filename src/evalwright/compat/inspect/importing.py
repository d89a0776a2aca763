"""Imports logs of inspect_ai as runs, with epochs as draws and metrics computed again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from textwrap import shorten
from typing import Any, Literal, get_args, get_type_hints

from evalwright import (
    Answer,
    Failure,
    Passage,
    Response,
    Run,
    Sample,
    SampleRecord,
    Score,
)
from evalwright.compat.inspect.conversations import (
    STOPS,
    message_text,
    read_content,
    read_prompt,
    shrink_messages,
)
from evalwright.compat.inspect.log_files import Log, LoggedSample, find_logs
from evalwright.compat.inspect.scores import OURS, ScoreReader, scores_by_scorer
from evalwright.compat.inspect.trajectories import (
    Trajectory,
    acts,
    read_trajectory,
    read_usage,
)
from evalwright.compat.recording import (
    as_list,
    as_mapping,
    hash_files,
    number,
    start_time,
    task_record,
)
from evalwright.extend import (
    ImportDestination,
    ImportSummary,
    MetricSpec,
    MissingExtra,
    RunError,
    RunFacts,
    TaskResult,
    TaskTally,
    fingerprint_of,
    is_known_metric,
    masked_arguments,
    printable,
    summarise_import,
)

FORMAT = KEY = "inspect_ai"
_MOST_COLUMNS = 1000
_MOST_SLICES = 8
_PASS = {r"pass_at_(\d+)": "pass@k", r"pass_k_(\d+)": "pass^k"}
_OWN_INTERVALS = (
    "stderr",
    "bootstrap_stderr",
    "bootstrap_std",
    "std",
    "var",
    "ci",
    "ci_wilson",
)
_CULPRITS: tuple[tuple[str, Literal["provider", "sandbox"]], ...] = (
    (
        r"ratelimit|connection|apistatus|apierror|apitimeout|internalserver|overloaded|httpx?\w*error",
        "provider",
    ),
    (r"sandbox|docker|container", "sandbox"),
)
"""Who failed, by a pattern in the name of inspect_ai's error; in any other it is the task."""


def imports(path: Path, runs_folder: Path, name: str = "") -> ImportSummary:
    """Import every log at `path`, for the command line."""
    imported = import_logs(path, runs_folder, name)
    summary = summarise_import(
        imported.runs,
        _describe_run,
        ("format", "file", "status", "notes"),
        imported.left_out,
    )
    return replace(summary, failed=imported.failed)


def _describe_run(run: Run) -> list[str]:
    task = run.tasks[0]
    figures = ", ".join(
        f"{metric.label} {metric.estimate.value:.4g}" for metric in task.metrics[:6]
    )
    failed = f", without a score {task.n_missing}" if task.n_missing else ""
    counts = f"samples {task.n_samples}{failed}"
    return [f"({run.model}: {counts}{'; ' if figures else ''}{figures})"]


@dataclass(frozen=True, slots=True)
class ImportedLogs:
    """The runs that logs became.

    Attributes:
        runs: the runs.
        left_out: a sentence for each file that is left out of a folder.
        failed: a sentence for each log of a folder that cannot be read.
    """

    runs: tuple[Run, ...]
    left_out: tuple[str, ...]
    failed: tuple[str, ...]


def import_logs(path: Path, runs_folder: Path, name: str = "") -> ImportedLogs:
    """Import a log, or every log in a folder.

    In a folder, a log that cannot be read does not keep the others from being imported.

    Raises:
        RunError: no log can be imported.
        MissingExtra: no log can be imported without an optional library.
    """
    folder = find_logs(path)
    destination = ImportDestination(runs_folder, name, alone=len(folder.logs) == 1)
    runs = []
    failed = [*folder.failed]
    first_error: RunError | MissingExtra | None = None
    for log in folder.logs:
        try:
            runs.append(_Import(log).run(destination))
        except (RunError, MissingExtra) as error:
            first_error = first_error or error
            failed.append(str(error))
    if not runs and first_error is not None:
        raise first_error
    return ImportedLogs(tuple(runs), folder.left_out, tuple(failed))


def import_inspect(
    path: Path, runs_folder: Path, name: str = ""
) -> tuple[tuple[Run, ...], list[str]]:
    """Import as `import_logs`; return the runs, and what is left out or cannot be read.

    Raises RunError.
    """
    imported = import_logs(path, runs_folder, name)
    return imported.runs, [*imported.left_out, *imported.failed]


MAX_REASON_CHARS = 600
"""So much of the error of a log is in its note; the log has all of it."""


def _reason(error: str) -> str:
    """An error's message on one line, cut between words where it is long."""
    line = shorten(error, MAX_REASON_CHARS, placeholder=" ...")
    return "".join(char if char.isprintable() else "?" for char in line)


_NOTED_FACTS = {
    "error": "ended with an error",
    "limit": "met a limit",
    "retried": "were tried again after an error",
}
_VERSIONS = (1, 2)
"""Supported versions of the log format."""


class _Import:
    """Imports one log, in two passes: one for what its samples have, one for their records."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.spec = log.spec
        self.task = "".join(
            sign if sign.isalnum() or sign in "._-/" else "-"
            for sign in self.spec["task"][:200]
        )
        self.places: dict[str, int] = {}
        self.epochs = 1
        self.columns: dict[str, tuple[float, float]] = {}
        self.slices: list[str] = []
        self.worths = ScoreReader()
        self.reduced: dict[tuple[str, str], dict[str, float]] = {}
        self.seen = dict.fromkeys(_NOTED_FACTS, 0)
        self._scan()
        self.published = _published(log.header)
        self.specs, self.theirs, self.left = self._metrics()

    @property
    def _sandbox(self) -> str:
        """The kind of the samples' sandboxes; "" for none."""
        sandbox = self.spec.get("sandbox")
        kind = sandbox if isinstance(sandbox, str) else as_mapping(sandbox).get("type")
        return printable(str(kind or ""))[:40]

    # -- what there is

    def _scan(self) -> None:
        pairs: set[tuple[str, int]] = set()
        for where, sample in self.log.samples():
            pair = (str(sample.id), sample.epoch)
            if pair in pairs:
                raise RunError(
                    f"{where}: the sample '{printable(pair[0])}' has its epoch"
                    f" {sample.epoch} twice."
                )
            pairs.add(pair)
            self.epochs = max(self.epochs, sample.epoch)
            if not self.places:
                flat = [
                    key
                    for key, value in sample.metadata.items()
                    if isinstance(value, (str, int))
                ]
                self.slices = [
                    key for key in flat if len(str(sample.metadata[key])) <= 60
                ][:_MOST_SLICES]
            self.places.setdefault(pair[0], len(self.places))
            self.seen["limit"] += sample.limit is not None
            self.seen["retried"] += bool(sample.error_retries)
            self.seen["error"] += sample.error is not None
            for name, value in self.worths.values(sample):
                worth = self.worths.worth(name, value)
                low, high = self.columns.get(name, (math.inf, -math.inf))
                self.columns[name] = (
                    (low, high)
                    if worth is None
                    else (min(low, worth), max(high, worth))
                )
            if len(self.columns) > _MOST_COLUMNS:
                raise RunError(
                    f"{where}: more than {_MOST_COLUMNS:,} kinds of scores are not"
                    " read."
                )
        sample_ids = as_mapping(self.spec.get("dataset")).get("sample_ids")
        order = {
            str(sample_id): position
            for position, sample_id in enumerate(as_list(sample_ids))
        }
        ids = sorted(
            self.places,
            key=lambda sample_id: (
                order.get(sample_id, len(order)),
                self.places[sample_id],
            ),
        )
        self.places = {sample_id: position for position, sample_id in enumerate(ids)}

    def _metrics(self) -> tuple[list[MetricSpec], dict[str, dict[str, Any]], list[str]]:
        """Our metrics, inspect_ai's by label, and those that are kept only in the record."""
        if our_specs := self._own_metrics():
            return our_specs, {}, []
        specs = []
        logged_metrics = {}
        not_recomputed = []
        reducers = {str(score.get("reducer") or "mean") for score in self.published}
        published_metrics = (
            (score, key)
            for score in self.published
            for key in as_mapping(score.get("metrics"))
        )
        for score, key in published_metrics:
            published = score["metrics"][key]
            name = str(score.get("name") or "")
            scorer = str(score.get("scorer") or "")
            reducer = str(score.get("reducer") or "mean")
            metric = str(as_mapping(published).get("name") or key)
            column = next(
                (
                    candidate
                    for candidate in (f"{scorer}.{name}", name)
                    if candidate in self.columns
                ),
                "",
            )
            label = key if len(self.columns) == 1 else f"{column or name}.{key}"
            label = label if reducers == {"mean"} else f"{label}[{reducer}]"
            value = number(as_mapping(published).get("value"))
            passed = next(
                (m for pattern in _PASS if (m := re.fullmatch(pattern, reducer))), None
            )
            plain = metric.rpartition("/")[2] in (
                "accuracy",
                "mean",
            ) and not as_mapping(published).get("group")
            if column and plain and passed:
                kind = _PASS[passed.re.pattern]
                specs.append(MetricSpec(label, kind, column, {"k": int(passed[1])}))
            elif (
                column
                and plain
                and (reducer == "mean" or self._reduce(column, reducer))
            ):
                low, high = self.columns[column]
                is_share = low >= 0 and high <= 1 and metric.endswith("accuracy")
                scorer_column = column if reducer == "mean" else f"{column}[{reducer}]"
                specs.append(
                    MetricSpec(label, "accuracy" if is_share else "mean", scorer_column)
                )
            else:
                not_recomputed += (
                    []
                    if metric.rpartition("/")[2] in _OWN_INTERVALS
                    else [f"{label} {value}"]
                )
                continue
            reduced = {"reducer": score.get("reducer"), "metric": key, "value": value}
            logged_metrics[label] = {"name": name, "scorer": scorer, **reduced}
        for column, (low, high) in self.columns.items() if not specs else ():
            kind = "accuracy" if low >= 0 and high <= 1 else "mean"
            specs.append(
                MetricSpec(
                    kind if len(self.columns) == 1 else f"{column}.{kind}", kind, column
                )
            )
        return specs, logged_metrics, not_recomputed

    def _own_metrics(self) -> list[MetricSpec]:
        """The metrics of an exported run of ours."""
        specs = []
        for metric in map(
            as_mapping,
            as_list(
                as_mapping(as_mapping(self.spec.get("metadata")).get(OURS)).get(
                    "metrics"
                )
            ),
        ):
            label, kind, scorer = (
                str(metric.get(key)) for key in ("label", "kind", "scorer")
            )
            less = metric.get("lower_is_better") is True
            specs.append(
                MetricSpec(label, kind, scorer, as_mapping(metric.get("options")), less)
            )
        return [
            spec
            for spec in specs
            if is_known_metric(spec) and spec.scorer in self.columns
        ]

    def _reduce(self, column: str, reducer: str) -> bool:
        """Whether the log has a reducer's scores; they then become a column of their own."""
        for reduction in map(as_mapping, self.log.reductions()):
            if (
                reduction.get("scorer") == column
                and reduction.get("reducer") == reducer
            ):
                rows = list(map(as_mapping, as_list(reduction.get("samples"))))
                values = {
                    str(row.get("sample_id")): self.worths.worth(
                        column, row.get("value")
                    )
                    for row in rows
                }
                self.reduced[column, reducer] = {
                    key: worth for key, worth in values.items() if worth is not None
                }
        return (column, reducer) in self.reduced

    # -- records

    def run(self, destination: ImportDestination) -> Run:
        """Write the run."""
        log = self.log
        spec = self.spec
        model = printable(spec["model"])
        header = masked_arguments(dict(log.header))
        run_folder = destination.place(
            model, [self.task], {"imported": hash_files([log.path])}
        )
        columns = [
            *self.columns,
            *(f"{column}[{reducer}]" for column, reducer in self.reduced),
        ]
        tally = TaskTally(columns, self.slices)
        rows_by_index: dict[int, Any] = {}

        def records() -> Iterator[SampleRecord]:
            for _, sample in log.samples():
                record = self._record(sample)
                tally.add(record)
                rows_by_index[record.index] = [
                    record.sample.id,
                    record.sample.input,
                    list(record.sample.targets),
                ]
                yield record

        def finished() -> RunFacts:
            stats = as_mapping(header.get("stats"))
            config = as_mapping(as_mapping(header["eval"]).get("config"))
            task_result = tally.result(
                self.task, str(spec.get("task_version", 0)), self.specs
            )
            recorded_task = task_record(
                task_result,
                FORMAT,
                description=f"{printable(spec['task'])}; imported from inspect_ai",
                definition={"task": spec["task"], "metrics": self.theirs},
                content_hash=fingerprint_of(
                    {"rows": [row for _, row in sorted(rows_by_index.items())]}
                ),
                scorers=[(column, FORMAT, {}) for column in columns],
                metrics=self.specs,
                slice_keys=self.slices,
                draws=self.epochs,
            )
            imported = {
                "format": FORMAT,
                "file": log.path.name,
                "status": str(header.get("status") or "started"),
                "notes": self._notes(task_result),
                **{
                    key: _without_ids(header[key])
                    for key in _HEADER_KEYS
                    if header.get(key)
                },
            }
            began, ended = (
                str(stats.get(key) or "") for key in ("started_at", "completed_at")
            )
            seed = as_mapping(spec.get("model_generate_config")).get("seed")
            return RunFacts(
                started=start_time([began, str(spec.get("created") or "")], [log.path]),
                model=model,
                code={
                    "imported": FORMAT,
                    **{key: as_mapping(header["eval"]).get(key) for key in _MODEL_KEYS},
                },
                tasks=[recorded_task],
                configuration={
                    "scoring": "published",
                    "limit": (
                        config.get("limit")
                        if isinstance(config.get("limit"), int)
                        else None
                    ),
                    "seed": seed if isinstance(seed, int) else None,
                    "imported": imported,
                },
                seconds=_between(began, ended),
                environment=_environment(spec),
                usage=read_usage(
                    as_mapping(stats.get("model_usage")).get(spec["model"])
                ),
            )

        return run_folder.write(records(), finished, self.epochs)

    def _record(self, row: LoggedSample) -> SampleRecord:
        extras: dict[str, Any] = {} if isinstance(row.id, str) else {"id": row.id}
        ours = as_mapping(row.metadata.get(OURS))
        messages = list(row.messages)
        choices = row.output.get("choices")
        chosen = as_mapping(choices[0]) if isinstance(choices, list) and choices else {}
        trajectory = (
            read_trajectory(row, self._sandbox) if acts(row) and chosen else None
        )
        if trajectory is not None:
            messages = list(trajectory.messages)
        elif (
            messages and as_mapping(messages[-1]).get("role") == "assistant" and chosen
        ):
            messages.pop()
        prompt, lossy = read_prompt(
            messages or (row.input if isinstance(row.input, list) else [])
        )
        if lossy or (row.error is not None and acts(row)):
            extras |= {
                "messages": shrink_messages(row.messages),
                "output": shrink_messages(row.output),
            }
        question = row.input
        if isinstance(question, list):
            extras["input"] = shrink_messages(question)
            question = "\n\n".join(
                message_text(message)
                for message in question
                if as_mapping(message).get("role") == "user"
            )
        targets = tuple([row.target] if isinstance(row.target, str) else row.target)
        scores, failures = self.worths.read_scores(row, extras)
        if row.epoch == 1:
            for (column, reducer), reduced_scores in self.reduced.items():
                if str(row.id) in reduced_scores:
                    explanation = f"{reducer} over the epochs"
                    scores[f"{column}[{reducer}]"] = Score(
                        reduced_scores[str(row.id)], explanation=explanation
                    )
        index = self.places[str(row.id)]
        log_fields = {
            key: getattr(row, key) for key in ("limit", "uuid") if getattr(row, key)
        }
        extras |= log_fields | (
            {"retries": len(row.error_retries)} if row.error_retries else {}
        )
        if row.total_time:
            extras["total_time"] = row.total_time
        failure = None
        if row.error is not None:
            failure = _failure(row.error, ours.get("failure"))
            if scores:
                extras["error"], failure = failure.message, None
        answer = (
            self._answer(row, chosen, prompt or question, ours, trajectory)
            if chosen and failure is None
            else None
        )
        if answer is None and failure is None and not scores:
            limit = (
                f"It met its limit: {printable(str(row.limit.get('type')))}."
                if row.limit
                else ""
            )
            failure = Failure(
                "no reply", "model", limit or "The log has no reply of the model here."
            )
        metadata = {key: value for key, value in row.metadata.items() if key != OURS}
        passages = map(as_mapping, as_list(ours.get("passages")))
        if KEY in metadata:
            extras["metadata"] = metadata[KEY]
        sample = Sample(
            str(row.id),
            question,
            targets if targets != ("",) else (),
            tuple(row.choices),
            tuple(
                right
                for target in targets
                if (right := _option_index(target, row.choices)) is not None
            ),
            passages=tuple(
                Passage(str(passage.get("id")), str(passage.get("text")))
                for passage in passages
            ),
            metadata={**metadata, **({KEY: extras} if extras else {})},
            cluster=str(ours.get("cluster") or ""),
        )
        score_failures = {} if failure else failures
        return SampleRecord(
            self.task,
            index,
            row.epoch - 1,
            sample,
            answer,
            scores,
            failure,
            score_failures,
        )

    def _answer(
        self,
        row: LoggedSample,
        chosen: Mapping[str, Any],
        prompt: Any,
        ours: Mapping[str, Any],
        trajectory: Trajectory | None,
    ) -> Answer:
        parts, reasoning, _ = read_content(chosen.get("message"))
        text = "".join(part for part in parts if isinstance(part, str))
        stop = str(chosen.get("stop_reason") or "")
        reason = str(ours.get("finish_reason") or STOPS.get(stop, stop))
        usage = read_usage(
            row.model_usage.get(self.spec["model"]) or row.output.get("usage")
        )
        latency = number(row.output.get("time")) or 0.0
        model = str(row.output.get("model") or "")
        reason = "length" if row.limit and not text else reason
        response = Response(
            text, reasoning, reason, usage=usage, latency=latency, model=model
        )
        letters = [
            as_mapping(score).get("answer") for score in scores_by_scorer(row).values()
        ]
        first = next(
            (
                letter
                for letter in letters
                if isinstance(letter, str) and len(letter) == 1
            ),
            "",
        )
        likelihoods = [
            value
            for raw in as_list(ours.get("log_likelihoods"))
            if (value := number(raw)) is not None
        ]
        return Answer(
            text,
            reasoning,
            _option_index(first, row.choices),
            tuple(likelihoods),
            prompt,
            (response,) if trajectory is None else trajectory.responses,
            {} if trajectory is None else trajectory.strategy,
        )

    def _notes(self, task_result: TaskResult) -> list[str]:
        """Note what the log says that its samples do not, and why."""
        notes = []
        header = self.log.header
        status = header.get("status", "started")
        error = as_mapping(header.get("error")).get("message")
        n_samples = as_mapping(self.spec.get("dataset")).get("samples")
        if (version := header.get("version", 1)) not in _VERSIONS:
            notes.append(
                f"The log is of version {printable(str(version))[:40]} of its format;"
                f" {' and '.join(map(str, _VERSIONS))} are known. It was read as"
                f" version {_VERSIONS[-1]}: check that the numbers are those of"
                " inspect_ai."
            )
        if status != "success":
            reason = f": {_reason(str(error))}" if error else ""
            notes.append(
                f"Its status is '{printable(str(status))}', with {len(self.places)} of"
                f" {n_samples} samples{reason}."
            )
        for key, description in _NOTED_FACTS.items():
            if self.seen[key]:
                notes.append(
                    f"Samples, each epoch counted, that {description}: {self.seen[key]}."
                )
        notes += [
            f"'{column}' has values that are no numbers, such as"
            f" '{printable(value)[:40]}': they count as 0, as inspect_ai counts them."
            for column, value in self.worths.odd.items()
        ]
        for metric in task_result.metrics:
            logged_value = self.theirs.get(metric.label, {}).get("value")
            recomputed = metric.estimate.value
            if logged_value is None or abs(logged_value - recomputed) <= 1e-9 * max(
                1.0, abs(logged_value)
            ):
                continue
            why = (
                "its samples do not give it; it may have been made from other scores,"
                " or by another arithmetic"
            )
            if metric.scorer in self.worths.empty:
                why = (
                    "inspect_ai counts a missing value (null) as 0; here it is a score"
                    " that failed"
                )
            elif math.isnan(recomputed):
                why = "nothing was scored, which inspect_ai shows as 0"
            notes.append(
                f"'{metric.label}' is {logged_value:.6g} in the log and {recomputed:.6g} here:"
                f" {why}."
            )
        if self.left:
            notes.append(f"In the record only: {printable(', '.join(self.left[:20]))}.")
        return notes


_HEADER_KEYS = ("eval", "plan", "results", "stats", "error")
_MODEL_KEYS = ("model", "model_base_url", "model_args", "model_generate_config")


def _option_index(letter: str, choices: Sequence[str]) -> int | None:
    """The index of the option that a letter names."""
    index = ord(letter) - 65 if len(letter) == 1 else -1
    return index if 0 <= index < len(choices) else None


def _published(header: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The log's own metrics, one entry for each scorer and reducer."""
    log_results = as_mapping(header.get("results"))
    first = as_mapping(log_results.get("scorer"))
    if first:
        metrics = log_results.get("metrics") or first.get("metrics")
        return [{"name": "score", "scorer": "score", "metrics": metrics}]
    return [
        score for score in map(as_mapping, as_list(log_results.get("scores"))) if score
    ]


def _failure(error: Mapping[str, Any], ours: Any) -> Failure:
    message = str(error.get("message") or "inspect_ai recorded no message.")[:2000]
    our_failure = as_mapping(ours)
    if isinstance(our_failure.get("kind"), str) and our_failure.get(
        "party"
    ) in get_args(get_type_hints(Failure)["party"]):
        return Failure(
            our_failure["kind"][:200],
            our_failure["party"],
            str(our_failure.get("message") or message)[:2000],
        )
    kind = re.match(r"\w+", message)
    party: Literal["provider", "sandbox", "task"] = next(
        (
            culprit
            for pattern, culprit in _CULPRITS
            if re.search(pattern, (kind[0] if kind else "").lower())
        ),
        "task",
    )
    return Failure(kind[0][:60] if kind else "error", party, message)


def _between(began: str, ended: str) -> float:
    try:
        return (
            datetime.fromisoformat(ended) - datetime.fromisoformat(began)
        ).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _environment(spec: Mapping[str, Any]) -> dict[str, Any]:
    commit = as_mapping(spec.get("revision")).get("commit")
    packages = as_mapping(spec.get("packages")).items()
    libraries = {printable(key): printable(str(value)) for key, value in packages}
    commit_hash = printable(commit) if isinstance(commit, str) else None
    return {"libraries": libraries, "git_commit": commit_hash}


def _without_ids(section: Any) -> Any:
    """Remove the ids of samples from a section of the header."""
    if isinstance(section, dict) and isinstance(section.get("dataset"), dict):
        dataset = {
            key: value
            for key, value in section["dataset"].items()
            if key != "sample_ids"
        }
        return {**section, "dataset": dataset}
    return section
