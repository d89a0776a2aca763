"""Runs of one model at several dates: which of them belong together, and which is the newest.

Runs belong to one series if they are of one model (the same label; without a label, the same name
and arguments), one prompt, and the same tasks on the same part of their samples. Runs with another
seed, limit, filter or prompt are no history of each other, nor are the repeats inside a run.

A run that scored earlier answers again is a newer verdict on these answers, not a newer answer. The
newest result of a series is that of the newest answers, by the verdicts that were newest then.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from evalwright.analysis.words import counted, listed
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.text import printable
from evalwright.runs.reader import Run, called
from evalwright.runs.writer import RUN_FILE

CLOCK_SLACK = timedelta(days=1)
"""How far another machine's clock may be ahead."""
_SAME_ANSWERS_OTHERWISE = frozenset(
    {"batch", "max_concurrency", "max_retries", "price", "requests_per_minute", "timeout",
     "tokens_per_minute"}
)  # fmt: skip
"""Arguments that say how requests are sent, not what is asked."""


@dataclass(frozen=True, slots=True)
class DatedAnswers:
    """The answers of one evaluation, with all verdicts on them, the oldest first.

    Attributes:
        answered: when the answers were given.
        runs: the run that gave them, if it is there, and those that scored them again.
    """

    answered: datetime
    runs: tuple[Run, ...]

    @property
    def newest(self) -> Run:
        """The newest verdicts on the answers."""
        return self.runs[-1]


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """The results of one model on the same tasks, the oldest answers first."""

    label: str
    answers: tuple[DatedAnswers, ...]

    @property
    def newest(self) -> Run:
        """The newest result."""
        return self.answers[-1].newest

    @property
    def n_runs(self) -> int:
        """Number of runs, verdicts on the same answers included."""
        return sum(len(dated.runs) for dated in self.answers)


def started_at(run: Run) -> datetime:
    """Return when a run started, in UTC; a time without a zone counts as UTC.

    Raises:
        RunError: it is outside of what a calendar has.
    """
    return _utc(run, str(run.data["started"]), "started")


def _utc(run: Run, text: str, field: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise RunError(
            f"{run.folder / RUN_FILE}: '{field}' is '{printable(text)[:60]}', which is not a"
            " date and time in UTC, so the run has no place in time."
        ) from None


def read_date(text: str, option: str, now: datetime | None = None) -> datetime:
    """Read a date that was typed; a day counts to its end, in UTC.

    Args:
        text: such as 2026-06-30, or 2026-06-30T12:00:00+00:00.
        option: what it was typed for, for messages.
        now: the present time.

    Raises:
        ConfigurationError: it is no date, or in the future.
    """
    try:
        if len(text) == len("2026-06-30"):
            moment = datetime.combine(date.fromisoformat(text), time.max, UTC)
            first_moment = datetime.combine(moment.date(), time.min, UTC)
        else:
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
            first_moment = moment
    except (ValueError, OverflowError):
        raise ConfigurationError(
            f"{option} takes a date, such as 2026-06-30, not '{printable(text)[:60]}'."
        ) from None
    present = now or datetime.now(UTC)
    if first_moment > present + CLOCK_SLACK:
        raise ConfigurationError(
            f"{option} {printable(text)[:60]} is in the future. Name a day that has passed."
        )
    return moment


def check_not_in_future(runs: Sequence[Run], now: datetime | None = None) -> None:
    """Refuse runs that say they started in the future: they would be the newest for years.

    Raises:
        RunError: a run did; the message names its file.
    """
    latest = (now or datetime.now(UTC)) + CLOCK_SLACK
    for run in runs:
        if started_at(run) > latest:
            raise RunError(
                f"{run.folder / RUN_FILE}: 'started' is '{run.data['started']}', which is in"
                " the future, so the run would be the newest of its model until then. Make"
                " it again on a machine whose clock is right, or leave it out."
            )


def series_of(
    runs: Sequence[Run], as_of: datetime | None = None
) -> tuple[ModelSeries, ...]:
    """Sort runs into series, in the order in which the runs name their models.

    Args:
        runs: the runs.
        as_of: runs that started later do not exist.
    """
    present = [run for run in runs if as_of is None or started_at(run) <= as_of]
    by_key: dict[str, list[Run]] = {}
    for run in present:
        by_key.setdefault(_series_key(run), []).append(run)
    return tuple(
        ModelSeries(series_runs[0].label, _dated_answers(series_runs))
        for series_runs in by_key.values()
    )


def newest_runs(runs: Sequence[Run], as_of: datetime | None = None) -> list[Run]:
    """Return the newest result of each series, in the order of the runs.

    Args:
        runs: the runs.
        as_of: runs that started later do not exist.
    """
    newest = {id(series.newest) for series in series_of(runs, as_of)}
    return [run for run in runs if id(run) in newest]


def _series_key(run: Run) -> str:
    configuration = run.data["configuration"]
    label = str(run.data["model"].get("label") or "")
    return json.dumps(
        [
            label or run.model,
            {} if label else _answering_arguments(run),
            run.simulated,
            run.prompt.get("name", ""),
            sorted(str(task["name"]) for task in run.data["tasks"]),
            [configuration.get(key) for key in ("limit", "seed", "where", "shard")],
        ],
        sort_keys=True,
        default=str,
    )


def _answering_arguments(run: Run) -> dict[str, Any]:
    """Return the arguments that make another model of an unlabelled one, such as its effort."""
    models = run.data["configuration"].get("models")
    specs = [
        spec
        for spec in models or ()
        if isinstance(spec, dict) and spec.get("arguments")
    ]
    named = [spec for spec in specs if spec.get("model") == run.model] or specs
    arguments = named[0]["arguments"] if len(named) == 1 else {}
    if not isinstance(arguments, dict):
        return {}
    return {
        name: argument
        for name, argument in arguments.items()
        if name not in _SAME_ANSWERS_OTHERWISE
    }


def _dated_answers(runs: Sequence[Run]) -> tuple[DatedAnswers, ...]:
    """Bring the runs that have the same answers together, each copy of a result once."""
    by_hash: dict[str, Run] = {}
    # A verdict of the same second as the answers is the newer one.
    for run in sorted(
        runs, key=lambda run: (started_at(run), bool(source_of(run)), run.name)
    ):
        by_hash.setdefault(run.samples_sha256, run)
    by_answers: dict[str, list[Run]] = {}
    for run in by_hash.values():
        by_answers.setdefault(_answers_hash(run, by_hash), []).append(run)
    dated = [
        DatedAnswers(_answered_at(runs_of_answers[0]), tuple(runs_of_answers))
        for runs_of_answers in by_answers.values()
    ]
    return tuple(
        sorted(
            dated, key=lambda answers: (answers.answered, started_at(answers.newest))
        )
    )


def _answers_hash(run: Run, by_hash: dict[str, Run]) -> str:
    """Return the hash of the samples in which a run's answers stood first, as far as is known."""
    digest = run.samples_sha256
    passed = {digest}
    while digest in by_hash and (source := source_of(by_hash[digest])):
        digest = str(source["samples_sha256"])
        if digest in passed:
            break
        passed.add(digest)
    return digest


def source_of(run: Run) -> dict[str, Any]:
    """Return which run's answers or scores this one was made of; {} if it asked itself."""
    for key in ("scored_from", "aggregated_from"):
        source = run.data.get(key)
        if isinstance(source, dict):
            return source
    return {}


def _answered_at(run: Run) -> datetime:
    answered = source_of(run).get("answered")
    return started_at(run) if answered is None else _utc(run, str(answered), "answered")


# -- what is new since a date ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """What a board has that it did not have before.

    Attributes:
        new: models that were not there.
        changed: models with another result.
        unchanged: models with the same result.
        left: models that were there and are no longer.
    """

    new: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    left: tuple[str, ...] = ()

    def sentences(self, since: str) -> list[str]:
        """Describe it, for the notes of a board."""
        kinds = (
            (self.new, "new"),
            (self.changed, "changed"),
        )
        counts = [f"{kind}: {listed(labels, 10)}" for labels, kind in kinds if labels]
        sentences = [
            f"Since {since}: {'; '.join(counts) or 'nothing new'}. Ranks are among the"
            " models shown."
        ]
        if self.unchanged:
            n_models = counted(len(self.unchanged), "model")
            verb = "has" if len(self.unchanged) == 1 else "have"
            sentences.append(f"Not shown: {n_models} that {verb} no new result.")
        if self.left:
            sentences.append(f"No longer there: {listed(self.left, 10)}.")
        return sentences


def changed_since(
    runs: Sequence[Run], since: datetime, as_of: datetime | None = None
) -> tuple[list[Run], ChangesSince]:
    """Return the newest results that were not the newest ones at a date, and what they are.

    Args:
        runs: all runs.
        since: the date.
        as_of: runs that started later do not exist.
    """
    hash_before = {
        _series_key(run): run.samples_sha256 for run in newest_runs(runs, since)
    }
    changed_runs = []
    labels: dict[str, list[str]] = {"new": [], "changed": [], "unchanged": []}
    for run in newest_runs(runs, as_of):
        key = _series_key(run)
        if hash_before.get(key) == run.samples_sha256:
            labels["unchanged"].append(run.label)
            continue
        changed_runs.append(run)
        labels["changed" if key in hash_before else "new"].append(run.label)
    return changed_runs, ChangesSince(*map(tuple, labels.values()))


def changed_since_board(
    runs: Sequence[Run], models: Sequence[dict[str, Any]]
) -> tuple[list[Run], ChangesSince]:
    """Return the newest results that an earlier board does not have, and what they are.

    Args:
        runs: the newest results.
        models: the models of the earlier `board.json`.
    """
    hashes_by_label: dict[str, set[str]] = {}
    for model in models:
        label = str(model.get("label") or model.get("model"))
        hashes_by_label.setdefault(label, set()).add(str(model.get("samples_sha256")))
    changed_runs = []
    labels: dict[str, list[str]] = {"new": [], "changed": [], "unchanged": []}
    names = called(runs)
    for run, name in zip(runs, names, strict=True):
        known_hashes = {
            digest
            for label in (name, run.label)
            for digest in hashes_by_label.get(label, ())
        }
        if run.samples_sha256 in known_hashes:
            labels["unchanged"].append(name)
            continue
        changed_runs.append(run)
        labels["changed" if known_hashes else "new"].append(name)
    present = {*names, *(run.label for run in runs)}
    left = tuple(label for label in hashes_by_label if label not in present)
    return changed_runs, replace(ChangesSince(*map(tuple, labels.values())), left=left)
