"""Results whose answers the judge of `board.yaml` has not scored: scored again, never asked again.

A new judge is no reason to ask models again, and answers of January in a result that is dated today
would tell readers so. They are scored, within one limit of dollars for all. Where that does not
suffice, or answers were not kept, the entry has failed with a sentence, and its old result stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalwright.analysis.model_series import DatedAnswers, series_of
from evalwright.analysis.words import counted, listed
from evalwright.core.errors import EvalwrightError, RunError, StoreError
from evalwright.core.private import home_folder
from evalwright.core.text import printable
from evalwright.entries.board_file import BoardFile
from evalwright.entries.entry_file import Entry
from evalwright.entries.outcomes import EntryOutcome
from evalwright.entries.rejudging import (
    JudgedResult,
    SamplesFinder,
    new_run_name,
    publish_rejudged,
    run_that_answered,
)
from evalwright.entries.results import Result, update_description
from evalwright.entries.sample_files import (
    RUNS_FOLDER,
    compress_samples,
    uploads_folder,
)
from evalwright.evaluation.changed_settings import describe_changes
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.planning import PlannedRun, is_same_evaluation
from evalwright.evaluation.remaining_budget import RemainingBudget
from evalwright.evaluation.rescoring import (
    Rescoring,
    prepare_rescoring,
    rescore_all,
)
from evalwright.evaluation.rescoring_price import price_rescorings
from evalwright.models.model_interface import Model, fingerprint_of
from evalwright.reports.endings import unscored_sentences
from evalwright.runs.published_record import published_task
from evalwright.runs.reader import Run, open_run

SHORT_HASH_CHARS = 8


@dataclass(frozen=True, slots=True)
class UnjudgedAnswers:
    """Answers of an entry that the board's judge has not scored.

    Attributes:
        entry: the entry.
        result: the result whose run gave the answers.
        old_judges: who scored them last, as a sentence names them.
        is_shown: whether the board ranks the entry by these answers; others are its history.
    """

    entry: Entry
    result: JudgedResult
    old_judges: str
    is_shown: bool


def describe_differences(planned_run: PlannedRun, run: Run) -> list[str]:
    """Describe what differs between a planned run and a result, which has no texts of rows."""
    return _describe(planned_run, run.data, planned_run.roles)


def is_of_present_settings(planned_run: PlannedRun, run: Run) -> bool:
    """Tell whether a result is of the settings of a planned run.

    A result whose answers were scored again by another judge is, if its model, answers' settings
    and judge are those of the plan.
    """
    if is_same_evaluation(planned_run, run.data):
        return True
    return "scored_from" in run.data and not describe_differences(planned_run, run)


def find_unjudged(
    planned_run: PlannedRun, entry: Entry, results: Sequence[Result]
) -> list[UnjudgedAnswers]:
    """Find the answers of an entry that lack nothing but the verdicts of the board's judge.

    Args:
        planned_run: the entry's run with the present settings.
        entry: the entry.
        results: its results.

    Returns:
        The answers, the oldest first; none if the newest of them have these verdicts.
    """
    if not any(map(is_judge, planned_run.roles)):
        return []
    judged_folders = set()
    runs = []
    for result in results:
        if is_of_present_settings(planned_run, result.run):
            judged_folders.add(result.run.folder)
            runs.append(result.run)
        elif _differs_in_judges_alone(planned_run, result.run):
            runs.append(result.run)
    if not runs:
        return []
    series = max(series_of(runs), key=lambda series: series.answers[-1].answered)
    unjudged = [
        dated
        for dated in series.answers
        if not any(run.folder in judged_folders for run in dated.runs)
    ]
    newest = series.answers[-1]
    if not any(dated is newest for dated in unjudged):
        return []
    return [
        UnjudgedAnswers(
            entry=entry,
            result=JudgedResult(entry.name, run_that_answered(dated)),
            old_judges=_judges_of(dated),
            is_shown=dated is newest,
        )
        for dated in unjudged
    ]


def is_judge(role: str) -> bool:
    """Tell whether the model in a role scores answers, and does not help to make them."""
    return role == "judge" or role.startswith("judge-")


def are_judged_by(
    roles: Mapping[str, Model], panel: Mapping[str, Any], results: Sequence[Result]
) -> bool:
    """Tell whether an entry's newest answers have verdicts of the judges among these models.

    Args:
        roles: the models beside the one under test, as the board has them.
        panel: how several judges decide.
        results: the entry's results, at least one.
    """
    judges = {
        role: model.fingerprint for role, model in roles.items() if is_judge(role)
    }
    runs = [result.run for result in results]
    series = max(series_of(runs), key=lambda series: series.answers[-1].answered)
    return any(
        _judge_fingerprints(run) == judges
        and (run.data["configuration"].get("panel") or {}) == dict(panel)
        for run in series.answers[-1].runs
    )


def _judge_fingerprints(run: Run) -> dict[str, Any]:
    return {
        role: role_record.get("fingerprint")
        for role, role_record in run.data["roles"].items()
        if is_judge(role)
    }


def _judges_of(dated: DatedAnswers) -> str:
    names = [
        str(role_record.get("name", ""))
        for role, role_record in dated.newest.data["roles"].items()
        if is_judge(role)
    ]
    return printable(listed(names) if names else "no judge")


def _differs_in_judges_alone(planned_run: PlannedRun, run: Run) -> bool:
    if not describe_differences(planned_run, run):
        return False  # something differs that has no words, such as a rule
    record = dict(run.data)
    record["roles"] = _without_judges(record.get("roles") or {})
    settings = dict(record.get("configuration") or {})
    settings["panel"] = planned_run.configuration.get("panel")
    record["configuration"] = settings
    return not _describe(planned_run, record, _without_judges(planned_run.roles))


def _without_judges(roles: Mapping[str, Any]) -> dict[str, Any]:
    return {role: model for role, model in roles.items() if not is_judge(role)}


def _describe(
    planned_run: PlannedRun, record: Mapping[str, Any], roles: Mapping[str, Any]
) -> list[str]:
    tasks = tuple(
        replace(
            task,
            definition=published_task({"definition": task.definition})["definition"],
        )
        for task in planned_run.tasks
    )
    return describe_changes(
        record,
        model=planned_run.model,
        roles=roles,
        tasks=tasks,
        configuration=planned_run.configuration,
    )


@dataclass(frozen=True, slots=True)
class JudgeChange:
    """Scores the answers of results by the judge of a board.

    Attributes:
        board: the board, which `require_allowed` has let pass.
        most_dollars: what all of it may cost; more than that is not begun.
        home: the folder of the store, and of the runs with the answers.
        samples_into: where files of samples are prepared; None for the board's own place.
        say: hears what is done.
    """

    board: BoardFile
    most_dollars: float
    home: str | None = None
    samples_into: Path | None = None
    say: Callable[[str], None] = lambda sentence: None

    def score(
        self, answers: Sequence[UnjudgedAnswers], budget: RemainingBudget
    ) -> list[EntryOutcome]:
        """Score answers, and publish them beside their old verdicts.

        Args:
            answers: of all entries, each entry's together.
            budget: what the command may still spend.

        Returns:
            An outcome for each entry.

        Raises:
            StoreError: verdicts cannot be stored.
        """
        work = _Work()
        for unjudged in answers:
            work.add(unjudged.entry)
        self._prepare(answers, work)
        if work.rescorings:
            try:
                self._score_all(work, budget)
            except StoreError:
                raise
            except EvalwrightError as error:
                for unjudged, _ in work.rescorings:
                    work.fail(unjudged.entry, str(error))
        return [work.outcome(name) for name in work.entries]

    @property
    def _roles(self) -> dict[str, ModelSpec]:
        roles = self.board.suite.roles
        return {role: spec for role, spec in roles.items() if is_judge(role)}

    @property
    def _judge_names(self) -> list[str]:
        return [spec.model for spec in self._roles.values()]

    def _prepare(self, answers: Sequence[UnjudgedAnswers], work: _Work) -> None:
        finder = SamplesFinder(self.board, home_folder(self.home) / RUNS_FOLDER)
        suite = self.board.suite
        opened_models: dict[str, Any] = {}
        for unjudged in answers:
            try:
                answered_run = finder.find(unjudged.result)
            except RunError:
                self._note_lost(unjudged, work)
                continue
            try:
                rescoring = prepare_rescoring(
                    answered_run,
                    roles=self._roles,
                    unsure=dict(suite.unsure) or None,
                    panel=dict(suite.panel),
                    name=f"{new_run_name(self._judge_names)}-{self._judge_hash}",
                    home=self.home,
                    opened=opened_models,
                )
            except EvalwrightError as error:
                work.fail(unjudged.entry, str(error))
                continue
            work.rescorings.append((unjudged, rescoring))

    @property
    def _judge_hash(self) -> str:
        """What tells the runs of judges of one name but other settings apart."""
        suite = self.board.suite
        settings = [
            {role: spec.as_dict() for role, spec in self._roles.items()},
            dict(suite.panel),
            dict(suite.unsure),
        ]
        return fingerprint_of({"judges": settings})[:SHORT_HASH_CHARS]

    def _note_lost(self, unjudged: UnjudgedAnswers, work: _Work) -> None:
        """Say that answers were not kept: of the shown ones as a failure."""
        entry = unjudged.entry
        date = str(unjudged.result.published.data["started"])[:10]
        if not unjudged.is_shown:
            self.say(
                f"{entry.name}: its answers of {date} were not kept, so they have the"
                f" verdicts of {unjudged.old_judges} only."
            )
            return
        work.fail(
            entry,
            f"The board's judge is {listed(self._judge_names)}, and the answers of"
            f" {date} were scored by {unjudged.old_judges}. They were not kept"
            f" ('{home_folder(self.home) / RUNS_FOLDER}' has no such run), so no judge can"
            " score them again; the old result stays. To ask the model again:"
            f" evalwright entries run {entry.name} --round NAME, or in the repository: gh"
            f" workflow run publish.yml -f again={entry.name}",
        )

    def _score_all(self, work: _Work, budget: RemainingBudget) -> None:
        rescorings = [rescoring for _, rescoring in work.rescorings]
        texts = self.board.entries.price_texts
        names = dict.fromkeys(self._judge_names)
        price = [f"{name}={texts[name]}" for name in names if name in texts]
        prices = price_rescorings(rescorings, home=self.home, price=price)
        n_requests = sum(run_price.requests for run_price in prices)
        dollars = [run_price.dollars for run_price in prices]
        cost = None if None in dollars else sum(filter(None, dollars))
        if refusal := self._refuse(n_requests, cost):
            for unjudged, _ in work.rescorings:
                work.fail(unjudged.entry, refusal)
            return
        judges = listed(self._judge_names)
        self.say(
            f"The judge is now {judges}: {counted(len(rescorings), 'result')} scored"
            f" again, {counted(n_requests, 'request')}, about ${cost or 0:,.2f}. No model"
            " is asked."
        )
        outcome = rescore_all(
            rescorings,
            home=self.home,
            budget=self._limits(budget, has_price=bool(cost)),
            price=price,
            say=self.say,
        )
        spending = (outcome.spending or {}).get("spent") or {}
        budget.subtract_amounts(spending)
        runs = {run.folder.resolve(): run for run in outcome.runs}
        for unjudged, rescoring in work.rescorings:
            folder = rescoring.new.folder.resolve()
            if folder not in runs:
                work.fail(
                    unjudged.entry,
                    f"The budget was spent before {judges} had scored all answers. Run the"
                    " same command again: stored verdicts cost nothing.",
                )
                continue
            self._publish(unjudged, runs[folder], work)

    def _refuse(self, n_requests: int, cost: float | None) -> str:
        """Say why answers are not scored again by this command; "" if they are."""
        judges = listed(self._judge_names)
        by_hand = " ".join(f"--judge {name}" for name in self._judge_names)
        if cost is None:
            return (
                f"The judge is now {judges}, whose price is not known, so the answers are"
                " not scored again by this command. Write the price into board.yaml, under"
                " prices, or have them scored: evalwright entries rejudge"
                f" {by_hand}"
            )
        if cost <= self.most_dollars:
            return ""
        return (
            f"The judge is now {judges}. To have all answers scored by it costs about"
            f" ${cost:,.2f} ({counted(n_requests, 'request')}), and without a maintainer's"
            f" word it may cost ${self.most_dollars:,.2f} (most_dollars in board.yaml). The"
            f" old verdicts stay. To allow it: evalwright entries run --rejudge-for"
            f" {_round_up(cost)}, or in the repository: gh workflow run publish.yml -f"
            f" rejudge={_round_up(cost)}"
        )

    def _limits(self, budget: RemainingBudget, *, has_price: bool) -> tuple[str, ...]:
        """Return the budget of the command, of which dollars are no more than the limit."""
        limits = RemainingBudget(budget.text, dict(budget.remaining))
        if has_price:
            limits.remaining["dollars"] = min(
                self.most_dollars, limits.remaining.get("dollars", self.most_dollars)
            )
        return limits.as_settings()

    def _publish(self, unjudged: UnjudgedAnswers, run: Run, work: _Work) -> None:
        entry = unjudged.entry
        if problem := unscored_sentences([run]):
            work.fail(entry, problem)
            return
        try:
            folder = uploads_folder(self.board, self.home, self.samples_into)
            if folder is not None:
                name = f"{entry.name}--{run.samples_sha256[:SHORT_HASH_CHARS]}"
                self.say(
                    f"{entry.name}: samples in {compress_samples(run, folder, name)}"
                )
            target = publish_rejudged(self.board, unjudged.result, run)
            update_description(Result(entry.name, open_run(target)), entry)
            work.folders[entry.name] = target
        except EvalwrightError as error:
            work.fail(entry, str(error))


def _round_up(dollars: float) -> int:
    """Return a limit in whole dollars that is not met by a hair."""
    return math.ceil(dollars * 1.2)


@dataclass(slots=True)
class _Work:
    """What is to be done for each entry, and what came of it."""

    entries: dict[str, Entry] = field(default_factory=dict)
    rescorings: list[tuple[UnjudgedAnswers, Rescoring]] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        self.entries[entry.name] = entry

    def fail(self, entry: Entry, sentence: str) -> None:
        self.problems.setdefault(entry.name, sentence)

    def outcome(self, name: str) -> EntryOutcome:
        entry = self.entries[name]
        if name in self.problems:
            return EntryOutcome(name, entry.shown_name, "failed", self.problems[name])
        return EntryOutcome(
            name,
            entry.shown_name,
            "scored again",
            "the judge changed; the answers are those of the old result",
            self.folders.get(name),
        )
