"""Recomputes a run's numbers from its samples, and checks them against `run.json`.

Boards, comparisons and gates use these confirmed numbers, because `run.json` may say whatever
its author likes. `confirm` reads the scores (or looks up what this machine computed from the
same bytes before), computes every metric, slice and average again, rejects a record that
disagrees, and returns the run with the recomputed numbers. A number that cannot be recomputed,
because it comes from another program's arithmetic or a plug-in, or because there are only
aggregate results, stays as it was recorded, and is listed in `NumbersFrom.as_published`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

from evalwright._version import __version__
from evalwright.core.errors import RunError
from evalwright.core.outcomes import TOO_LONG
from evalwright.core.tasks import MetricSpec
from evalwright.core.text import printable
from evalwright.metrics.registry import is_known
from evalwright.metrics.tree import AVERAGES
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.grouping import group_records
from evalwright.runs.measures import check_bounded
from evalwright.runs.reader import NumbersFrom, Run
from evalwright.runs.results import SELDOM, MetricResult
from evalwright.runs.score_tables import ScoreTable, is_large, keep_scores
from evalwright.runs.sealed import SCORES
from evalwright.runs.stopping import (
    noted_groups,
    with_noted_intervals,
    with_valid_intervals,
)
from evalwright.runs.writer import RUN_FILE
from evalwright.tasks.dialects import dialect_of

RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9
SLACK = 1e-6
"""How far rounding may put a number outside its interval."""
MAX_NAMED = 3
_FORMAT = 1
_COUNTS = ("n_samples", "n_missing", "n_unsure", "n_judged", "n_judge_failed")
_OLD_COUNTS = ("n_samples", "n_missing")
"""The counts that records of the first schema have."""
_METRIC_COUNTS = ("n", "n_missing", "n_unsure")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One number that differs between `run.json` and the samples.

    Attributes:
        task: "" for a number about the whole run.
        figure: what the number is.
        recorded: its value in `run.json`.
        from_samples: its value recomputed from the samples.
    """

    task: str
    figure: str
    recorded: str
    from_samples: str

    @property
    def sentence(self) -> str:
        """A sentence with both values, without the task."""
        return (
            f"{self.figure} is {self.recorded} in {RUN_FILE}, {self.from_samples} from"
            " the samples"
        )


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The parts of `run.json` that contain numbers, recomputed.

    Attributes:
        tasks: the tasks' results.
        groups: the averages over tasks.
        answers: tokens and cost of the answers.
        as_published: numbers that were not recomputed, as "task: metric".
        disagreements: numbers that differ from the record.
    """

    tasks: Sequence[Mapping[str, Any]]
    groups: Sequence[Mapping[str, Any]]
    answers: Mapping[str, Any] | None
    as_published: tuple[str, ...] = ()
    disagreements: tuple[Disagreement, ...] = field(default=(), compare=False)


def confirm(run: Run) -> Run:
    """Return the run with numbers recomputed from its samples; its `numbers_from` says from what.

    Raises RunError where the samples are not those of the record, cannot be read, or lead to other
    numbers.
    """
    if run.numbers_from is not None:
        return run
    digest = run.verify()
    if digest not in run._confirmed:
        run._confirmed[digest] = _confirm(run, digest)
    return run._confirmed[digest]


def confirm_all(
    runs: Sequence[Run], progress: Callable[[str], None] | None = None
) -> list[Run]:
    """Confirm each of several runs; see `confirm`.

    Args:
        runs: the runs.
        progress: called with words about how far it is.
    """
    confirmed_runs = []
    for number, run in enumerate(runs, 1):
        if progress is not None:
            progress(
                f"Checking the scores of run {number:,} of {len(runs):,}: {run.id}"
            )
        confirmed_runs.append(confirm(run))
    return confirmed_runs


def doubts(run: Run) -> list[str]:
    """List what to tell someone who looks at a run's recorded numbers.

    That is: its samples lead to other numbers, or some numbers were not recomputed. Nothing is said
    of a large run whose numbers this machine has not computed before, since recomputing them would
    take too long for a quick look.
    """
    try:
        if is_large(run) and SCORES.read(_name(run, run.verify())) is None:
            return []
        return published_notes([confirm(run)])
    except RunError as error:
        return [f"Warning: {error}"]


def remember_numbers(run: Run) -> None:
    """Remember that this machine computed a run's numbers from its samples.

    For runs whose numbers a reader could not recompute, or not quickly.
    """
    if not is_large(run) and all(map(_is_made_by_ours, run.data["tasks"])):
        return
    groups = run.data.get("groups", ())
    answers = run.data["usage"].get("answers")
    confirmation = Confirmation(run.data["tasks"], groups, answers)
    SCORES.write(_name(run, run.verify()), _packed(confirmation))


def _confirm(run: Run, digest: str) -> Run:
    name = _name(run, digest)
    sealed = _unpacked(SCORES.read(name)) if is_large(run) else None
    confirmation = sealed or _from_scores(run)
    if sealed is None and confirmation.as_published:
        # A plug-in or a dialect's folder that computed them may be missing now but have been there
        # when the run was made.
        confirmation = _unpacked(SCORES.read(name)) or confirmation
    elif sealed is None and is_large(run):
        SCORES.write(name, _packed(confirmation))
    source = NumbersFrom(
        "samples" if sealed is None else "kept table", confirmation.as_published
    )
    if run.has_published_scores:
        source = replace(source, source="published table")
    confirmed_data = {**run.data, "tasks": list(confirmation.tasks)}
    if "groups" in confirmed_data:
        confirmed_data["groups"] = list(confirmation.groups)
    if confirmation.answers is not None:
        confirmed_data["usage"] = {
            **confirmed_data["usage"],
            "answers": dict(confirmation.answers),
        }
    return replace(
        run, data=confirmed_data, numbers_from=source, _confirmed={}, _results={}
    )


def keep_confirmation(run: Run, scores: RunScores, confirmation: Confirmation) -> None:
    """Keep what was computed from all records of a large run, as `confirm` would.

    Args:
        run: the run, whose samples were read to their end.
        scores: the scores that were read.
        confirmation: the numbers computed from them.
    """
    if not is_large(run) or confirmation.disagreements:
        return
    keep_scores(run, scores.tables())
    if not confirmation.as_published:
        SCORES.write(_name(run, run.verify()), _packed(confirmation))


def _from_scores(run: Run) -> Confirmation:
    """Recompute the numbers from the scores.

    Raises RunError where the record disagrees.
    """
    scores = RunScores(run)
    for row in run.score_rows():
        scores.add(row)
    confirmation = scores.confirmation()
    if confirmation.disagreements:
        raise RunError(_refusal(run, confirmation.disagreements))
    keep_scores(run, scores.tables())
    return confirmation


def _refusal(run: Run, disagreements: Sequence[Disagreement]) -> str:
    first = disagreements[0]
    of_task = f", task '{printable(first.task)}'" if first.task else ""
    further = (
        f" {len(disagreements) - 1} more of its figures differ."
        if len(disagreements) > 1
        else ""
    )
    if run.has_published_scores:
        way_out = "Ask its publisher for a record and a table of scores that agree."
    else:
        foreign = any(
            dialect_of(task["definition"]) is not None for task in run.data["tasks"]
        )
        command = "score" if foreign else "runs aggregate"
        way_out = (
            f"Restore {RUN_FILE}, or make the numbers again from the samples, without a"
            f" request: evalwright {command} {quote(str(run.folder))}"
        )
    return (
        f"Run '{run.id}'{of_task}: {printable(first.sentence)}.{further} The numbers of"
        f" {run.folder / RUN_FILE} are not used. {way_out}"
    )


class RunScores:
    """Recomputes a run's numbers from its records, taken one by one.

    Raises RunError for a record that belongs to no task of the run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._first_answered: dict[str, Mapping[str, Any]] = {}
        self._cost: float | None = None
        self._unpriced = 0
        self._rows = 0
        self._tallies = {
            str(task["name"]): TaskTally(
                [str(scorer["name"]) for scorer in task.get("scorers", ())],
                [str(key) for key in task.get("slice_keys", ())],
            )
            for task in run.data["tasks"]
        }

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the next record."""
        self._rows += 1
        name = row["task"]
        tally = self._tallies.get(name)
        if tally is None:
            raise RunError(
                f"{self._run.scores_file}, record {self._rows:,} is of"
                f" '{printable(name)[:60]}', which is no task of the run."
            )
        try:
            tally.add_row(row)
        except (
            KeyError,
            TypeError,
            AttributeError,
            ValueError,
            OverflowError,
        ) as error:
            raise RunError(
                f"{self._run.scores_file}, record {self._rows:,} is not that of a"
                f" sample ({type(error).__name__}: {printable(str(error))[:100]})."
            ) from error
        if "answer" in row and name not in self._first_answered:
            self._first_answered[name] = row.get("metadata") or {}
        for response in row.get("responses", ()):
            if (cost := response.get("cost")) is not None:
                self._cost = (self._cost or 0.0) + cost
            elif response.get("finish_reason") != TOO_LONG:  # not billed
                self._unpriced += 1

    def tables(self) -> dict[str, ScoreTable]:
        """Return the scores as arrays, by task."""
        return {name: tally.table() for name, tally in self._tallies.items()}

    def confirmation(self, without: frozenset[str] = frozenset()) -> Confirmation:
        """Return the numbers, with all disagreements.

        Args:
            without: tasks whose records could not all be read.
        """
        tasks = []
        published = list[str]()
        disagreements = list[Disagreement]()
        for task in self._run.data["tasks"]:
            if task["name"] in without:
                tasks.append(task)
                continue
            recomputed_tasks = _TaskAgain(
                self._run,
                task,
                self._tallies[task["name"]],
                self._first_answered.get(task["name"]),
            )
            tasks.append(recomputed_tasks.record())
            published += recomputed_tasks.as_published
            disagreements += recomputed_tasks.disagreements
        groups: list[Mapping[str, Any]] = list(self._run.data.get("groups", ()))
        if groups and not disagreements and not without:
            groups = self._groups(tasks, groups, published, disagreements)
        answers = self._answers(disagreements) if not without else None
        return Confirmation(
            tasks, groups, answers, tuple(published), tuple(disagreements)
        )

    def _groups(
        self,
        tasks: Sequence[Mapping[str, Any]],
        recorded: Sequence[Mapping[str, Any]],
        published: list[str],
        disagreements: list[Disagreement],
    ) -> list[Mapping[str, Any]]:
        """Recompute the averages over tasks."""
        stopping = self._run.data.get("stopping")
        try:
            tables = {name: tally.table() for name, tally in self._tallies.items()}
            recomputed = group_records(
                tasks, self._run.data["configuration"], tables.__getitem__
            )
            again = {
                str(group["name"]): group
                for group in noted_groups(recomputed, stopping)
            }
        except Exception:  # a user's own dialect may raise anything
            again = {}
        unconfirmed = {name.partition(": ")[0] for name in published}
        groups: list[Mapping[str, Any]] = []
        for group in recorded:
            ours = again.get(str(group["name"]))
            by_label = (
                {metric["label"]: metric for metric in ours["metrics"]} if ours else {}
            )
            is_ours = group.get("average") in AVERAGES and not unconfirmed & set(
                group.get("tasks", ())
            )
            metrics = []
            for metric in group["metrics"]:
                our_metric = by_label.get(metric["label"])
                if our_metric is not None and _same(
                    metric["value"], our_metric["value"]
                ):
                    metrics.append(
                        our_metric if our_metric["low"] is not None else metric
                    )
                    continue
                if (
                    our_metric is not None
                    and our_metric["value"] is not None
                    and is_ours
                ):
                    figure = f"{metric['label']} of the group '{group['name']}'"
                    disagreements.append(
                        Disagreement(
                            "",
                            figure,
                            _figure_text(metric["value"]),
                            _figure_text(our_metric["value"]),
                        )
                    )
                elif metric["value"] is not None:
                    published.append(f"{group['name']}: {metric['label']}")
                metrics.append(metric)
            groups.append({**group, "metrics": metrics})
        return groups

    def _answers(self, disagreements: list[Disagreement]) -> dict[str, Any] | None:
        """Recompute what the answers cost.

        None where the record does not say it, or another program wrote it.
        """
        answers = self._run.data["usage"].get("answers") or {}
        if "cost" not in answers or not all(map(_is_own, self._run.data["tasks"])):
            return None
        recorded = answers["cost"]
        cost = self._cost
        if not _same(recorded, cost):
            disagreements.append(
                Disagreement(
                    "",
                    "the cost of its answers",
                    _figure_text(recorded),
                    _figure_text(cost),
                )
            )
        unpriced = (
            {"unpriced": self._unpriced} if self._unpriced and cost is not None else {}
        )
        other_figures = {
            key: value for key, value in answers.items() if key != "unpriced"
        }
        return {**other_figures, **unpriced}


class _TaskAgain:
    """Recomputes one task's part of `run.json`."""

    def __init__(
        self,
        run: Run,
        task: Mapping[str, Any],
        tally: TaskTally,
        first_answered: Mapping[str, Any] | None,
    ) -> None:
        self._run = run
        self._task = task
        self._tally = tally
        self._first_answered = first_answered
        self._name = str(task["name"])
        self.as_published: list[str] = []
        self.disagreements: list[Disagreement] = []

    def record(self) -> dict[str, Any]:
        """Return the task's part with recomputed numbers in place of the recorded ones."""
        task = dict(self._task)
        recomputed = self._again()
        if _is_imported(task):
            return {**task, **self._imported(recomputed)}
        counted = self._run.data["schema"] > 1
        self._compare_counts(recomputed, _COUNTS if counted else _OLD_COUNTS)
        if counted:
            task = {
                key: recorded for key, recorded in task.items() if key not in SELDOM
            }
            task |= {
                key: recomputed[key]
                for key in (*_COUNTS, "failures", *SELDOM)
                if key in recomputed
            }
            if self._task.get("outcomes"):
                task["outcomes"] = recomputed["outcomes"]
        by_label = {metric["label"]: metric for metric in recomputed["metrics"]}
        task["metrics"] = [
            self._metric(metric, by_label, counted) for metric in self._task["metrics"]
        ]
        task["slices"] = {
            key: {
                value: self._slice(key, value, metrics, recomputed["slices"])
                for value, metrics in by_value.items()
            }
            for key, by_value in self._task["slices"].items()
        }
        return task

    def _again(self) -> dict[str, Any]:
        """Compute the task's results by the metrics that are known here."""
        import numpy as np

        specs = [spec for spec in self._specs() if spec.scorer in self._tally.scores]
        for spec in specs if _is_made_by_ours(self._task) else ():
            values = np.frombuffer(self._tally.scores[spec.scorer].values, np.float64)
            check_bounded(self._run, spec, values)
        version = str(self._task["version"])
        with np.errstate(all="ignore"):  # the recorded scores may be absurd
            task_result = self._tally.result(self._name, version, specs).as_dict()
        stopping = self._run.data.get("stopping")
        derived = any(
            key in self._run.data for key in ("scored_from", "aggregated_from")
        )
        with_intervals = with_noted_intervals if derived else with_valid_intervals
        recomputed = with_intervals(task_result, stopping)
        for metric in recomputed["metrics"]:
            # The interval of a stopping rule is recorded with the rule; it cannot be recomputed
            # from the samples.
            value = metric["value"]
            low = metric["low"]
            high = metric["high"]
            if (
                None not in (value, low, high)
                and not low - SLACK <= value <= high + SLACK
            ):
                self._disagree(
                    f"the interval of {metric['label']}",
                    f"{low:g} to {high:g}",
                    f"around {value:g}",
                )
        return recomputed

    def _specs(self) -> list[MetricSpec]:
        specs = [MetricSpec(**spec) for spec in self._task.get("metric_specs") or ()]
        dialect = dialect_of(self._task["definition"])
        if dialect is None or (
            all(map(self._is_mean, self._task["metrics"])) and not self._task["slices"]
        ):
            return [spec for spec in specs if is_known(spec)]
        try:
            first = self._first_answered or {}
            configuration = self._run.data["configuration"]
            rules = dialect.rules(self._task, configuration, first, {"bootstrap": 0})
            return list(rules.metrics_for(self._tally.names()))
        except Exception:
            # The dialect's files or library may be missing here, and foreign code may raise
            # anything.
            return []

    def _imported(self, recomputed: Mapping[str, Any]) -> dict[str, Any]:
        """Keep another program's numbers, noting those that the samples do not reproduce."""
        by_label = {metric["label"]: metric for metric in recomputed["metrics"]}
        for metric in self._task["metrics"]:
            ours = by_label.get(metric["label"])
            same = (
                ours is not None
                and _same(metric["value"], ours["value"])
                and metric["n"] == ours["n"]
            )
            if not same and not self._is_mean(metric) and metric["value"] is not None:
                self.as_published.append(f"{self._name}: {metric['label']}")
        return {}

    def _compare_counts(
        self, recomputed: Mapping[str, Any], counts: Sequence[str]
    ) -> None:
        for count in counts:
            recorded = self._task.get(count, 0)
            recomputed_count = recomputed.get(count, 0)
            if recorded != recomputed_count:
                self._disagree(count, recorded, recomputed_count)
        outcomes = self._task.get("outcomes")
        if counts is _COUNTS and outcomes and outcomes != recomputed["outcomes"]:
            outcome = next(
                outcome_name
                for outcome_name in {**outcomes, **recomputed["outcomes"]}
                if outcomes.get(outcome_name)
                != recomputed["outcomes"].get(outcome_name)
            )
            self._disagree(
                f"outcomes.{outcome}",
                outcomes.get(outcome, 0),
                recomputed["outcomes"].get(outcome, 0),
            )

    def _metric(
        self, metric: Mapping[str, Any], by_label: Mapping[str, Any], counted: bool
    ) -> Mapping[str, Any]:
        """Check one recorded metric against the recomputed one, and return the one to use."""
        ours = by_label.get(metric["label"])
        if ours is None or (ours["value"] is None and metric["value"] is not None):
            if metric["value"] is not None and not self._is_mean(metric):
                self.as_published.append(f"{self._name}: {metric['label']}")
            return metric
        if metric["value"] is None:
            return metric  # it could not be computed when the run was recorded
        if self._differs(metric["label"], metric, ours, counted):
            return metric
        # Under another framework's rules, bootstrap intervals are not recomputed here.
        if ours["low"] is None and metric["low"] is not None:
            return metric
        confirmed_metric: Mapping[str, Any] = ours
        return confirmed_metric

    def _slice(
        self,
        key: str,
        value: str,
        metrics: Sequence[Mapping[str, Any]],
        slices: Mapping[str, Any],
    ) -> list[Mapping[str, Any]]:
        by_label = {
            metric["label"]: metric for metric in slices.get(key, {}).get(value, ())
        }
        confirmed_metrics = []
        for metric in metrics:
            ours = by_label.get(metric["label"])
            if ours is None or ours["value"] is None or metric["value"] is None:
                published = f"{self._name}: {metric['label']} by {key}"
                if metric["value"] is not None and published not in self.as_published:
                    self.as_published.append(published)
                confirmed_metrics.append(metric)
            elif self._differs(
                f"{metric['label']} of {key} {value}", metric, ours, False
            ):
                confirmed_metrics.append(metric)
            else:
                confirmed_metrics.append(metric if ours["low"] is None else ours)
        return confirmed_metrics

    def _differs(
        self,
        figure: str,
        metric: Mapping[str, Any],
        ours: Mapping[str, Any],
        counted: bool,
    ) -> bool:
        """Tell whether a recorded metric differs from the recomputed one, and note it."""
        if not _same(metric["value"], ours["value"]):
            self._disagree(figure, metric["value"], ours["value"])
            return True
        for count in _METRIC_COUNTS if counted else ():
            if metric.get(count, 0) != ours.get(count, 0):
                self._disagree(
                    f"{count} of {figure}", metric.get(count, 0), ours.get(count, 0)
                )
                return True
        return False

    def _disagree(self, figure: str, recorded: Any, recomputed: Any) -> None:
        self.disagreements.append(
            Disagreement(
                self._name, figure, _figure_text(recorded), _figure_text(recomputed)
            )
        )

    def _is_mean(self, metric: Mapping[str, Any]) -> bool:
        """Tell whether a metric is the mean of its scorer's values or of a named part of them.

        The mean may also be negated or subtracted from 1.
        """
        import numpy as np

        if metric["scorer"] not in self._tally.scores or metric["value"] is None:
            return False
        order = np.lexsort(
            (
                np.frombuffer(self._tally.draws, np.int32),
                np.frombuffer(self._tally.indices, np.int64),
            )
        )
        column = self._tally.column(metric["scorer"], order)
        names = {metric["label"], metric["label"].partition(",")[0]}
        columns = [
            column.values,
            *(
                part_values
                for name, part_values in column.parts.items()
                if name in names
            ),
        ]
        less = MetricResult.from_dict(metric).less_is_better
        for values in columns:
            known_values = values[~np.isnan(values)]
            if not len(known_values) or len(known_values) != metric["n"]:
                continue
            with np.errstate(all="ignore"):
                mean = float(known_values.mean())
            forms = (mean, -mean, 1 - mean) if less else (mean,)
            if any(_same(metric["value"], form) for form in forms):
                return True
        return False


def _is_made_by_ours(task: Mapping[str, Any]) -> bool:
    """Tell whether every number of a task comes from a metric of this package."""
    specs = [MetricSpec(**spec) for spec in task.get("metric_specs") or ()]
    return not task["definition"].get("dialect") and all(map(is_known, specs))


def _is_imported(task: Mapping[str, Any]) -> bool:
    """Tell whether another program computed the task's numbers.

    Its definition then names a dialect that is none of ours.
    """
    return (
        bool(task["definition"].get("dialect"))
        and dialect_of(task["definition"]) is None
    )


def _is_own(task: Mapping[str, Any]) -> bool:
    return not _is_imported(task)


def _same(recorded: Any, recomputed: Any) -> bool:
    if recorded is None or recomputed is None:
        return recorded is recomputed
    return math.isclose(
        recorded, recomputed, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE
    )


def _figure_text(figure: Any) -> str:
    if figure is None:
        return "no number"
    return f"{figure:g}" if isinstance(figure, float) else str(figure)


# -- numbers that this machine computed before -------------------------------------------


def _name(run: Run, digest: str) -> str:
    """The key under which the numbers are stored on this machine.

    It depends on the content of the scores, everything in `run.json`, and the version of the
    program.
    """
    identity = json.dumps([_FORMAT, __version__, run.data], sort_keys=True, default=str)
    identity_hash = hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()
    return f"{digest}.{identity_hash[:32]}.json"


def _packed(confirmation: Confirmation) -> bytes:
    return json.dumps(
        [
            confirmation.tasks,
            confirmation.groups,
            confirmation.answers,
            confirmation.as_published,
        ]
    ).encode()


def _unpacked(packed: bytes | None) -> Confirmation | None:
    if packed is None:
        return None
    try:
        tasks, groups, answers, as_published = json.loads(packed)
    except ValueError:
        return None
    return Confirmation(tasks, groups, answers, tuple(as_published))


# -- in words --------------------------------------------------------------------------

KEPT_TABLE = "scores from this machine's table of the same samples"
PUBLISHED_TABLE = "scores from a published table, not from samples"
AS_PUBLISHED = "figures as published, not computed here"
"""Marks numbers that another program computed and that were not recomputed."""


def numbers_from(runs: Sequence[Run]) -> dict[str, str]:
    """Say for each run what its numbers were computed from, if not from its samples alone."""
    sources_by_run = {}
    for run in runs:
        if run_sources := list(_sources(run)):
            sources_by_run[run.id] = "; ".join(run_sources)
    return sources_by_run


def published_from(runs: Sequence[Run]) -> dict[str, str]:
    """Like `numbers_from`, for reports: omits that a table of this machine was used.

    Such a table is derived from the same bytes as the samples, so it makes no difference.
    """
    sources_by_run = {
        run.id: [source for source in _sources(run) if source != KEPT_TABLE]
        for run in runs
    }
    return {
        name: "; ".join(run_sources)
        for name, run_sources in sources_by_run.items()
        if run_sources
    }


def _sources(run: Run) -> Iterator[str]:
    source = run.numbers_from
    if source is None:
        return
    if source.source == "kept table":
        yield KEPT_TABLE
    if source.source == "published table":
        yield PUBLISHED_TABLE
    if source.as_published:
        n_unnamed = len(source.as_published) - MAX_NAMED
        named = ", ".join(map(printable, source.as_published[:MAX_NAMED]))
        yield f"{AS_PUBLISHED} ({named}{f' and {n_unnamed} more' if n_unnamed > 0 else ''})"


def published_notes(runs: Sequence[Run]) -> list[str]:
    """Write a sentence for each way in which numbers were not computed from samples.

    It names the runs concerned; `KEPT_TABLE` is left out.
    """
    by_source: dict[str, list[str]] = {}
    for run in runs:
        for source in _sources(run):
            if source != KEPT_TABLE:
                by_source.setdefault(source, []).append(run.label)
    notes = []
    # What is published must not depend on the order of the runs.
    for source, labels in sorted(by_source.items()):
        labels = sorted(labels)
        others = (
            f" and {len(labels) - MAX_NAMED} more" if len(labels) > MAX_NAMED else ""
        )
        notes.append(f"{', '.join(labels[:MAX_NAMED])}{others}: {source}.")
    return notes


def kept_note(runs: Sequence[Run]) -> str:
    """Write a note for the terminal that numbers were looked up; "" where none were."""
    count = sum(
        run.numbers_from is not None and run.numbers_from.source == "kept table"
        for run in runs
    )
    if not count:
        return ""
    which = "1 run" if count == 1 else f"{count:,} runs"
    their = "its" if count == 1 else "their"
    return (
        f"{which}: scores looked up on this machine, where they were computed earlier from"
        f" {their} samples."
    )
