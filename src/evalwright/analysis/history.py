"""The history of a model on a board: its results by date, and what changed between them.

What changed is read from the runs' records alone: the model's fingerprint and the names in its
replies, the judge, the data, the prompt, the settings, the scorers and evalwright's version. The
change of the score is paired where both runs have the same items. Where judge, data, prompt,
settings or scorers differ, it is not a change of the model alone, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.comparison import read_matrices
from evalwright.analysis.judges_used import scoring_roles
from evalwright.analysis.model_series import (
    DatedAnswers,
    ModelSeries,
    source_of,
    started_at,
)
from evalwright.analysis.trees import make_average, overall_node
from evalwright.analysis.words import listed
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.core.plain import Plain
from evalwright.core.secrets import masked_arguments, without_address
from evalwright.core.text import printable
from evalwright.metrics.registry import BOUNDED
from evalwright.runs.content_hashes import data_differ
from evalwright.runs.measures import unpaired_of
from evalwright.runs.published_record import is_same_part, published_task
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.statistics import Estimate

MODEL = "model"
JUDGE = "judge"
DATA = "data"
PROMPT = "prompt"
SETTINGS = "settings"
SCORING = "scoring"
VERSION = "evalwright"
CONFOUNDING = (JUDGE, DATA, PROMPT, SETTINGS, SCORING)
"""What may change a score beside the model, the most telling first."""
TARGET_ROLE = "target"
FINGERPRINT_CHARS = 8
MAX_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Change(Plain):
    """Something that differs between two results: what it is, and how, in a phrase."""

    what: str
    text: str


@dataclass(frozen=True, slots=True)
class ScoreChange(Plain):
    """How much a score changed.

    Attributes:
        difference: the later score minus the earlier one.
        low: low end of its 95% interval; nan where there is none.
        high: its high end.
        paired: whether it is over the items that both runs have.
        n: the number of these items; of the later run where it is not paired.
    """

    difference: float
    low: float
    high: float
    paired: bool
    n: int

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class EarlierVerdict(Plain):
    """A score of the same answers by the verdicts of another time."""

    run: str
    samples_sha256: str
    date: str
    judge: str
    score: Estimate | None


@dataclass(frozen=True, slots=True)
class HistoryEntry(Plain):
    """A result of the model, and what changed since the one before.

    Attributes:
        run: the run's id.
        samples_sha256: the hash of its samples.
        date: the day of the answers.
        scored: the day of the verdicts, where it is another one; else "".
        score: the headline score; None where there is none.
        judge: the models that scored, "" for none.
        changes: what differs from the result before.
        score_change: how the score differs from the result before; None for the first, and where
            the two cannot be compared.
        reason: why they cannot.
        earlier_verdicts: what other verdicts on the same answers gave.
        bounded: whether scores are shares, shown in points.
        lower_is_better: whether lower scores are better.
        measure: what the score is.
    """

    run: str
    samples_sha256: str
    date: str
    scored: str
    score: Estimate | None
    judge: str
    changes: tuple[Change, ...]
    score_change: ScoreChange | None
    reason: str
    earlier_verdicts: tuple[EarlierVerdict, ...]
    bounded: bool
    lower_is_better: bool
    measure: str

    @property
    def confounded_by(self) -> tuple[str, ...]:
        """What else differs, so that the change of the score is not one of the model."""
        kinds = {change.what for change in self.changes}
        return tuple(kind for kind in CONFOUNDING if kind in kinds)

    @property
    def may_be_silent(self) -> bool:
        """Whether the score changed although nothing that is recorded did."""
        recorded_changes = {change.what for change in self.changes} - {VERSION}
        changed = self.score_change is not None and self.score_change.is_significant
        return changed and not recorded_changes

    def as_record(self) -> dict[str, Any]:
        """Return the small form of `board.json`."""
        change = self.score_change
        return {
            "run": self.run,
            "date": self.date,
            **({"scored": self.scored} if self.scored else {}),
            "score": None if self.score is None else _small(self.score),
            "judge": self.judge,
            "changes": [record.as_dict() for record in self.changes],
            "score_change": None if change is None else change.as_dict(),
            "of_the_model": change is not None and not self.confounded_by,
            **({"reason": self.reason} if self.reason else {}),
            "earlier_verdicts": [
                {
                    "run": verdict.run,
                    "date": verdict.date,
                    "judge": verdict.judge,
                    "score": None if verdict.score is None else _small(verdict.score),
                }
                for verdict in self.earlier_verdicts
            ],
        }


def _small(estimate: Estimate) -> dict[str, Any]:
    return {
        name: number if math.isfinite(number) else None
        for name in ("value", "low", "high", "n")
        if (number := getattr(estimate, name)) is not None
    }


def history_of(
    series: ModelSeries, metric: str | None = None
) -> tuple[HistoryEntry, ...]:
    """Return the results of a model, the oldest first.

    Args:
        series: the runs, whose numbers were confirmed.
        metric: the metric, a label or TASK.LABEL; by default the mean over the tasks, or the
            only task's main metric.
    """
    entries: list[HistoryEntry] = []
    earlier: DatedAnswers | None = None
    for answers in series.answers:
        entries.append(_history_entry(answers, earlier, metric))
        earlier = answers
    return tuple(entries)


def _history_entry(
    answers: DatedAnswers, earlier: DatedAnswers | None, metric: str | None
) -> HistoryEntry:
    run = answers.newest
    score, bounded, lower_is_better, measure = _headline(run, metric)
    changes: tuple[Change, ...] = ()
    change = None
    reason = ""
    if earlier is not None:
        before = _comparable_verdicts(earlier, run)
        changes = tuple(find_changes(before, run))
        change, reason = measure_change(before, run, metric)
    answered_day = answers.answered.date().isoformat()
    scored_day = started_at(run).date().isoformat()
    return HistoryEntry(
        run=run.id,
        samples_sha256=run.samples_sha256,
        date=answered_day,
        scored="" if scored_day == answered_day else scored_day,
        score=score,
        judge=judge_names(run),
        changes=changes,
        score_change=change,
        reason=reason,
        earlier_verdicts=tuple(
            EarlierVerdict(
                old.id,
                old.samples_sha256,
                started_at(old).date().isoformat(),
                judge_names(old),
                _headline(old, metric)[0],
            )
            for old in answers.runs[:-1]
        ),
        bounded=bounded,
        lower_is_better=lower_is_better,
        measure=measure,
    )


def _comparable_verdicts(earlier: DatedAnswers, run: Run) -> Run:
    """Choose the verdicts on earlier answers that the later ones are best compared with.

    They are those of the same judges where there are any, so that a change of the judge does not
    hide what the model did.
    """
    judges = _judge_prints(run)
    by_same_judges = [old for old in earlier.runs if _judge_prints(old) == judges]
    return (by_same_judges or list(earlier.runs))[-1]


# -- scores ----------------------------------------------------------------------------


def _headline(run: Run, metric: str | None) -> tuple[Estimate | None, bool, bool, str]:
    """Return a run's headline score, whether it is a share, its direction and its name."""
    metric_by_task: dict[str, MetricResult] = {}
    for task in run.tasks:
        task_metric = task.metric(metric)
        if task_metric:
            metric_by_task[task.name] = task_metric
    if not metric_by_task:
        return None, True, False, ""
    first = next(iter(metric_by_task.values()))
    bounded = all(
        task_metric.kind in BOUNDED for task_metric in metric_by_task.values()
    )
    if len(metric_by_task) > 1:
        try:
            matrices = read_matrices([run], (), metric)
            node = overall_node([run], list(metric_by_task)) if metric is None else None
            average = make_average(matrices, node)
        except (ConfigurationError, RunError, UnknownName):
            average = None
        if average is not None:
            return average.mean(0), bounded, first.less_is_better, average.words
    name = next(iter(metric_by_task))
    return (
        first.estimate,
        first.kind in BOUNDED,
        first.less_is_better,
        f"{name}: {first.label}",
    )


def measure_change(
    earlier: Run, later: Run, metric: str | None = None
) -> tuple[ScoreChange | None, str]:
    """Measure how the headline score changed, paired where the items are the same.

    Args:
        earlier: the earlier run.
        later: the later run.
        metric: as in `history_of`.

    Returns:
        The change, or None with the reason why there is none.
    """
    try:
        matrices = read_matrices([later, earlier], (), metric)
        node = (
            overall_node([later, earlier], [matrix.measure.task for matrix in matrices])
            if metric is None
            else None
        )
        average = make_average(matrices, node)
    except (ConfigurationError, RunError, UnknownName) as error:
        return None, str(error)
    if average is None:
        return None, "the tasks have different units, so there is no score over all"
    if average.paired:
        difference = average.difference()
        change = ScoreChange(
            difference.difference, difference.low, difference.high, True, difference.n
        )
        return change, ""
    if len(average.samples) > 1:
        return None, "some task has no item in common"
    unpaired = unpaired_of(average.samples[0])
    change = ScoreChange(
        unpaired.difference, unpaired.low, unpaired.high, False, unpaired.n_a
    )
    return change, ""


# -- what changed ----------------------------------------------------------------------


def judge_names(run: Run) -> str:
    """Name the models that scored a run, with the names in their replies; "" for none."""
    names = dict.fromkeys(
        _with_reply_names(name, _reply_names(run, role))
        for role, (_, name) in sorted(scoring_roles(run).items())
    )
    return ", ".join(names)


def _with_reply_names(name: str, replies: Sequence[str]) -> str:
    further = [reply for reply in replies if reply not in name]
    return f"{name} ({listed(further, 2)})" if further else name


def _judge_prints(run: Run) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {
        role: (fingerprint, tuple(_reply_names(run, role)))
        for role, (fingerprint, _) in scoring_roles(run).items()
    }


def _reply_names(run: Run, role: str) -> list[str]:
    """List the names of the model in its replies; refused replies do not count."""
    rows = run.data.get("reply_names", {}).get(role, ())
    return sorted(
        {
            printable(str(row["name"]))[:MAX_SHOWN_CHARS]
            for row in rows
            if row.get("responses", 1)
        }
    )


def find_changes(earlier: Run, later: Run) -> Iterator[Change]:
    """List what differs between two results of a model, from their records.

    Args:
        earlier: the earlier run.
        later: the later run.
    """
    phrases: dict[str, list[str]] = {}
    for change in _list_changes(earlier, later):
        phrases.setdefault(change.what, []).append(change.text)
    for change_kind, texts in phrases.items():
        yield Change(change_kind, "; ".join(texts))


def _list_changes(earlier: Run, later: Run) -> Iterator[Change]:
    has_same_answers = _has_same_answers(earlier, later)
    if not has_same_answers:
        yield from _model_changes(earlier, later)
    yield from _judge_changes(earlier, later)
    yield from _task_changes(earlier, later)
    if not has_same_answers:
        yield from _settings_changes(earlier, later)
    versions = [str(run.data["evalwright"]) for run in (earlier, later)]
    if versions[0] != versions[1]:
        yield Change(VERSION, _from_to(*versions))


def _has_same_answers(earlier: Run, later: Run) -> bool:
    return str(source_of(later).get("samples_sha256")) == earlier.samples_sha256


def _from_to(before: object, after: object) -> str:
    texts = [
        printable(str("not set" if side is None else side))[:MAX_SHOWN_CHARS]
        for side in (before, after)
    ]
    return f"from {texts[0]} to {texts[1]}"


def _model_changes(earlier: Run, later: Run) -> Iterator[Change]:
    old = earlier.data["model"]
    new = later.data["model"]
    replies = [_reply_names(run, TARGET_ROLE) for run in (earlier, later)]
    phrases = []
    if old["name"] != new["name"]:
        phrases.append(_from_to(earlier.shown_model, later.shown_model))
    elif old["fingerprint"] != new["fingerprint"] and not _arguments_differ(
        earlier, later
    ):
        prints = (str(model["fingerprint"])[:FINGERPRINT_CHARS] for model in (old, new))
        phrases.append(f"another model under the name, fingerprint {_from_to(*prints)}")
    if all(replies) and replies[0] != replies[1]:
        sides = (listed(names, 3) for names in replies)
        phrases.append(f"the name in its replies {_from_to(*sides)}")
    if phrases:
        yield Change(MODEL, "; ".join(phrases))


def _judge_changes(earlier: Run, later: Run) -> Iterator[Change]:
    old = scoring_roles(earlier)
    new = scoring_roles(later)
    phrases = []
    for role in sorted({*old, *new}):
        names = [
            _with_reply_names(roles[role][1], _reply_names(run, role))
            if role in roles
            else "none"
            for roles, run in ((old, earlier), (new, later))
        ]
        replies = [_reply_names(run, role) for run in (earlier, later)]
        is_other = old.get(role, ("", ""))[0] != new.get(role, ("", ""))[0]
        if is_other and names[0] == names[1]:
            phrases.append(f"another model or other settings under the name {names[0]}")
        elif is_other or (all(replies) and replies[0] != replies[1]):
            phrases.append(_from_to(*names))
    panels = [run.data["configuration"].get("panel") for run in (earlier, later)]
    if not is_same_part(*panels) and not phrases:
        phrases.append("another panel, or another way to combine its verdicts")
    if phrases:
        yield Change(JUDGE, "; ".join(dict.fromkeys(phrases)))


def _task_changes(earlier: Run, later: Run) -> Iterator[Change]:
    """Find changes of data, prompts, ways of answering and scorers, by kind over all tasks."""
    phrases: dict[str, list[str]] = {}
    old_tasks = {task["name"]: task for task in earlier.data["tasks"]}
    for task in later.data["tasks"]:
        old = old_tasks.get(task["name"])
        if old is None:
            continue
        for kind, phrase in _changes_of_task(old, task):
            phrases.setdefault(kind, []).append(f"{task['name']}: {phrase}")
    prompts = [run.prompt for run in (earlier, later)]
    if prompts[0] != prompts[1]:
        name = prompts[1].get("name") or prompts[0].get("name", "")
        phrases.setdefault(PROMPT, []).insert(0, f"'{name}' has another text")
    shots = [run.data["configuration"].get("num_fewshot") for run in (earlier, later)]
    if shots[0] != shots[1]:
        phrases.setdefault(PROMPT, []).append(f"worked examples {_from_to(*shots)}")
    for kind in (DATA, PROMPT, SETTINGS, SCORING):
        if kind in phrases:
            yield Change(kind, listed(phrases[kind], 3))


def _changes_of_task(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    old, new = published_task(old), published_task(new)
    if data_differ(old["content_hash"], new["content_hash"]):
        yield DATA, "other samples"
    elif old["version"] != new["version"]:
        yield DATA, f"version {_from_to(old['version'], new['version'])}"
    definitions = [
        task["definition"] if isinstance(task["definition"], Mapping) else {}
        for task in (old, new)
    ]
    if _parts_differ(definitions, "prompt"):
        yield PROMPT, "another prompt"
    if _parts_differ(definitions, "answer") or _parts_differ(definitions, "strategy"):
        yield SETTINGS, "another way of answering"
    if old.get("draws", 1) != new.get("draws", 1):
        yield SETTINGS, f"draws {_from_to(old.get('draws', 1), new.get('draws', 1))}"
    if not is_same_part(old["scorers"], new["scorers"]) or not is_same_part(
        old["metric_specs"], new["metric_specs"]
    ):
        yield SCORING, "other scorers or metrics"
    elif _parts_differ(definitions, "scoring"):
        sides = (definition.get("scoring") for definition in definitions)
        yield SCORING, f"scoring {_from_to(*sides)}"


def _parts_differ(definitions: Sequence[Mapping[str, Any]], section: str) -> bool:
    sides = [definition.get(section) for definition in definitions]
    return not is_same_part(*sides)


def _settings_changes(earlier: Run, later: Run) -> Iterator[Change]:
    formats = [run.data["configuration"].get("format") for run in (earlier, later)]
    if formats[0] != formats[1]:
        yield Change(SETTINGS, f"format {_from_to(*formats)}")
    old, new = (model_arguments(run) for run in (earlier, later))
    for name in sorted({*old, *new}):
        if not is_same_part(old.get(name), new.get(name)):
            sides = (
                without_address(str(arguments[name])) if name in arguments else None
                for arguments in (old, new)
            )
            yield Change(SETTINGS, f"{printable(name)} {_from_to(*sides)}")


def _arguments_differ(earlier: Run, later: Run) -> bool:
    return any(_settings_changes(earlier, later))


def model_arguments(run: Run) -> dict[str, Any]:
    """Return the arguments that the model under test was opened with, secrets masked."""
    models = run.data["configuration"].get("models")
    specs = [spec for spec in models or () if isinstance(spec, Mapping)]
    named = [spec for spec in specs if spec.get("model") == run.model]
    if len(named or specs) != 1:
        return {}
    arguments = (named or specs)[0].get("arguments")
    return dict(masked_arguments(arguments)) if isinstance(arguments, Mapping) else {}
