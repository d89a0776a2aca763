"""Asks the model of a submission again, to see whether it may have given the file's answers.

A few answered items are drawn at random after the file was received, so that nobody can prepare
them. Each is asked twice, and never answered from the store: how far the file's answers are from
ours is judged against how far ours are from each other. Which model is asked, and where, is the
verifier's decision; nothing in the file can name an address or a model.
"""

from __future__ import annotations

import random
import re
import secrets
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.analysis.submission.verifying import Verification
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.plain import Plain, plain_fields
from evalwright.core.private import home_folder
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.evaluating import evaluate_settings
from evalwright.evaluation.remaining_budget import RemainingBudget
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.settings import Settings
from evalwright.runs.progress import ProgressReporter
from evalwright.runs.reader import Run
from evalwright.statistics.exchange import (
    ExchangeTest,
    OddOneOut,
    compare_exchanged,
    find_odd_one_out,
    largest_unseen_share,
)
from evalwright.tasks.filtering import ChosenSamples

N_REPEATS = 2
"""How often each item is asked: once to compare, once more to see the model's own variation."""
ALARM_P = 0.01
"""The chance of accusing an honest file, for the texts and for the scores each."""
RERUNS_FOLDER = "reruns"
MAX_NAMED_ITEMS = 10
_SEED = re.compile(r"[0-9a-f]{8,64}")
_ONLY_UNVERIFIABLE = "not verifiable"

ItemKey = tuple[str, str]
"""A task's name and a sample's id."""


@dataclass(frozen=True, slots=True)
class RerunSettings:
    """How a model is asked again.

    Attributes:
        model: the model, as the verifier names it.
        n_items: number of items.
        budget: what both repeats may spend together, such as ("2 USD",).
        price: the price of the model, if the tables do not have it.
        home: the folder of the store.
        seed: draws the items, in hexadecimal digits; "" for a new one that nobody can foresee.
    """

    model: ModelSpec
    n_items: int
    budget: tuple[str, ...] = ()
    price: tuple[str, ...] = ()
    home: str | None = None
    seed: str = ""


@dataclass(frozen=True, slots=True)
class ComparedItem(Plain):
    """One item with the file's answer and ours.

    Attributes:
        task: the task's name.
        id: the sample's id.
        is_same_text: whether the file's answer is one of ours.
        score: the score of the file's answer by the installed scorer; None without one.
        our_scores: the scores of ours.
    """

    task: str
    id: str
    is_same_text: bool
    score: float | None
    our_scores: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Rerun:
    """What asking again showed.

    Attributes:
        model: the model that was asked.
        seed: the seed that drew the items.
        n_drawn: items drawn.
        n_answered: answered items in the file.
        items: the items that were answered in both repeats.
        texts: the test of the texts.
        scores: the test of the scores; None where no item has scores of ours and the file's.
        dollars: what it cost; None if that is not known.
        budget_reached: the limit that ended it; "" for none.
    """

    model: str
    seed: str
    n_drawn: int
    n_answered: int
    items: tuple[ComparedItem, ...]
    texts: OddOneOut
    scores: ExchangeTest | None
    dollars: float | None
    budget_reached: str

    @property
    def texts_differ(self) -> bool:
        """Whether the file's texts differ from ours more than ours from each other."""
        return self.texts.p <= ALARM_P

    @property
    def scores_differ(self) -> bool:
        """Whether the file's scores differ from ours more than chance allows."""
        return self.scores is not None and self.scores.p <= ALARM_P

    @property
    def ok(self) -> bool:
        """Whether all drawn items were compared, and nothing speaks against the file."""
        is_complete = len(self.items) == self.n_drawn
        return is_complete and not self.texts_differ and not self.scores_differ

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        fields = plain_fields(self)
        return {"ok": self.ok, **fields, "conclusions": self.conclusions()}

    def conclusions(self) -> list[str]:
        """Say what can be concluded, and what cannot."""
        sentences = [self._completeness(), self._about_texts()]
        if self.scores is not None:
            sentences.append(self._about_scores(self.scores))
        sentences.append(self._verdict())
        return [sentence for sentence in sentences if sentence]

    def _completeness(self) -> str:
        n_missing = self.n_drawn - len(self.items)
        if not n_missing:
            return ""
        reason = "did not answer them"
        if self.budget_reached:
            reason = f"was not asked: the budget of {self.budget_reached} was spent"
        return (
            f"{n_missing:,} of {self.n_drawn:,} items could not be compared, because the"
            f" model {reason}."
        )

    def _about_texts(self) -> str:
        texts = self.texts
        sentence = (
            f"Texts: {texts.n_same:,} of {texts.n:,} are the same as one of our two;"
            f" between our two, {texts.n_repeats_same:,} are the same."
        )
        if texts.n_one_differs:
            sentence += (
                f" Of {texts.n_one_differs:,} items with one text that differs from two"
                f" others, it is the file's in {texts.n_candidate_differs:,}"
                f" (a third is expected; p = {texts.p:.2g})."
            )
        elif not texts.n_repeats_same:
            sentence += " Texts of this model say nothing, because no two are the same."
        return sentence

    def _about_scores(self, scores: ExchangeTest) -> str:
        sentence = (
            f"Scores: {scores.candidate:.3f} in the file, {scores.repeats:.3f} in ours"
            f" (p = {scores.p:.2g}, {scores.n:,} items)."
        )
        if scores.visible == scores.visible:  # not nan
            sentence += f" A difference of {scores.visible:.2f} would be seen with a chance of 80%."
        better = [
            item.id
            for item in self.items
            if item.score is not None
            and all(ours is not None and item.score > ours for ours in item.our_scores)
        ]
        if better and (self.scores_differ or self.texts_differ):
            names = ", ".join(better[:MAX_NAMED_ITEMS])
            sentence += f" Scored better in the file than in both of ours: {names}."
        return sentence

    def _verdict(self) -> str:
        if self.texts_differ or self.scores_differ:
            return (
                "The file's answers are not like those of this model today. That does not"
                " show who is wrong: the model may have changed since, or have been asked"
                " with other settings. Ask the submitter for date, provider and settings,"
                " and do not publish the file until that is explained."
            )
        if not self.items:
            return "Nothing can be concluded, because no item was compared."
        sentence = "Nothing speaks against the file."
        n_certain = self.texts.n_repeats_same
        if n_certain and not self.texts.n_candidate_differs:
            share = largest_unseen_share(n_certain)
            sentence += (
                f" With 95% confidence fewer than {100 * share:.0f}% of its answers were"
                " changed, of those that the model gives alike each time."
            )
        return (
            f"{sentence} It is not shown that every answer came from the model: a few that"
            " were replaced can be among the items that were not drawn."
        )


def can_ask_again(verification: Verification) -> bool:
    """Tell whether nothing is wrong with a file but that some scores need a judge or a sandbox."""
    return all(problem.kind == _ONLY_UNVERIFIABLE for problem in verification.problems)


def ask_again(
    verification: Verification,
    settings: RerunSettings,
    progress: ProgressReporter | None = None,
) -> Rerun:
    """Ask for some of a submission's items again, and compare.

    Args:
        verification: the submission, verified.
        settings: the model, and how many items.
        progress: hears how far it is.

    Raises:
        RunError: the file is not verified, or has no answered items.
        UsageError: the model cannot be asked.
    """
    if not can_ask_again(verification):
        raise RunError(
            "The file is not verified, so its model is not asked again: correct it first."
        )
    seed = settings.seed or secrets.token_hex(16)
    if not _SEED.fullmatch(seed):
        raise ConfigurationError(
            f"The seed must be 8 to 64 digits of 0 to 9 and a to f, not '{seed[:80]}'."
        )
    answers = _answered_items(verification)
    if not answers:
        raise RunError(
            "The file has no answered items, so there is no request to send again."
        )
    n_items = min(settings.n_items, len(answers))
    drawn = random.Random(seed).sample(sorted(answers), n_items)
    tasks = _tasks_of(verification.tasks, drawn)
    runs = [
        _ask_once(tasks, settings, seed, repeat, progress)
        for repeat in range(1, N_REPEATS + 1)
    ]
    our_records = [
        {(record.task, record.sample.id): record for record in run.samples()}
        for run in runs
    ]
    file_records = {
        (record.task, record.sample.id): record
        for record in verification.records
        if not record.draw
    }
    main_scorers = {task.name: _main_scorer(task) for task in verification.tasks}
    compared = []
    text_rows = []
    for key in sorted(drawn):
        ours = [records.get(key) for records in our_records]
        texts = [_text_of(record) for record in ours]
        if any(text is None for text in texts):
            continue
        text_rows.append((answers[key], *texts))
        scorer = main_scorers[key[0]]
        compared.append(
            ComparedItem(
                task=key[0],
                id=key[1],
                is_same_text=answers[key] in texts,
                score=_score_of(file_records.get(key), scorer),
                our_scores=tuple(_score_of(record, scorer) for record in ours),
            )
        )
    costs = [run.cost for run in runs]
    return Rerun(
        model=runs[0].shown_model,
        seed=seed,
        n_drawn=n_items,
        n_answered=len(answers),
        items=tuple(compared),
        texts=_compare_texts(text_rows),
        scores=_compare_scores(compared),
        dollars=None if None in costs else sum(cost or 0.0 for cost in costs),
        budget_reached=next(filter(None, map(_reached, runs)), ""),
    )


def _answered_items(verification: Verification) -> dict[ItemKey, str]:
    """Return the file's answer to each item of an installed task; the first draw of several."""
    sample_ids = {
        task.name: {sample.id for sample in task.samples} for task in verification.tasks
    }
    return {
        (row["task"], row["id"]): row["answer"]
        for row in verification.submission.document["samples"]
        if row.get("draw") == 0
        and row["answer"]
        and row["id"] in sample_ids.get(row["task"], ())
    }


def _tasks_of(tasks: Sequence[Task], drawn: Sequence[ItemKey]) -> dict[str, Task]:
    """Return the tasks with the drawn samples alone, each asked once."""
    drawn_keys = set(drawn)
    chosen: dict[str, Task] = {}
    for task in tasks:
        indices = array(
            "q",
            (
                index
                for index, sample in enumerate(task.samples)
                if (task.name, sample.id) in drawn_keys
            ),
        )
        if indices:
            samples = ChosenSamples(task.samples, indices, ["asked again"])
            chosen[task.name] = replace(task, samples=samples, draws=1)
    return chosen


def _ask_once(
    tasks: Mapping[str, Task],
    settings: RerunSettings,
    seed: str,
    repeat: int,
    progress: ProgressReporter | None,
) -> Run:
    """Ask every item once, in a round of its own, with its part of the budget."""
    budget = RemainingBudget.parse(settings.budget).divided(N_REPEATS)
    name = f"rerun-{seed[:16]}-{repeat}"
    configuration = Configuration(
        tasks=tuple(tasks),
        models=(settings.model,),
        name=name,
        round=name,
        out=str(home_folder(settings.home) / RERUNS_FOLDER),
        home=settings.home,
        budget=budget.as_settings(),
        price=settings.price,
        no_judge=any(task.roles for task in tasks.values()),
    )
    (run,) = run_blocking(
        lambda: evaluate_settings(
            Settings(configuration, tasks=tasks), progress=progress
        )
    )
    finished: Run = run
    return finished


def _reached(run: Run) -> str:
    return str((run.data.get("stopping") or {}).get("budget_reached") or "")


def _main_scorer(task: Task) -> str:
    if task.metrics:
        return task.metrics[0].scorer
    return task.scorers[0].name if task.scorers else ""


def _text_of(record: SampleRecord | None) -> str | None:
    if record is None or record.failure is not None or record.answer is None:
        return None
    return record.answer.text


def _score_of(record: SampleRecord | None, scorer: str) -> float | None:
    score = record.scores.get(scorer) if record is not None else None
    return None if score is None else score.value


def _compare_texts(rows: Sequence[tuple[Any, ...]]) -> OddOneOut:
    """rows: the file's text and ours, by item."""
    numbered = []
    for texts in rows:
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        numbered.append([distinct[text] for text in texts])
    if not numbered:
        return OddOneOut(0, 0, 0, 0, 0, 1.0)
    candidate, *repeats = zip(*numbered, strict=True)
    return find_odd_one_out(candidate, repeats)


def _compare_scores(items: Sequence[ComparedItem]) -> ExchangeTest | None:
    """Compare scores between 0 and 1, which can be averaged over tasks."""
    rows = [
        (compared.score, *compared.our_scores)
        for compared in items
        if all(
            score is not None and 0 <= score <= 1
            for score in (compared.score, *compared.our_scores)
        )
    ]
    if not rows:
        return None
    candidate, *repeats = zip(*rows, strict=True)
    return compare_exchanged(candidate, repeats)
