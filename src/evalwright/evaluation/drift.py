"""Tests whether two backends answer the same requests alike, so that their answers may be mixed.

Both get the samples of two bundled tasks: one answered by log-likelihood, one by generation at
temperature 0. The answers are compared in three ways: the log-probability of each token, the
generated texts, the scores. Every request is sent now; nothing is read from the store, because a
server that was changed under the same name would be compared with its own past.
"""

from __future__ import annotations

import asyncio
import math
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evalwright.core.errors import (
    AbilityError,
    AuthenticationFailed,
    ConfigurationError,
    ConnectionFailed,
    RequestFailed,
    WrongModel,
)
from evalwright.core.plain import Plain
from evalwright.core.responses import Response
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.engine.engine import Engine
from evalwright.engine.sqlite import SqliteStore
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.scoring import evaluate_sample
from evalwright.models.model_interface import Model
from evalwright.statistics.paired import Equivalence, equivalence_paired
from evalwright.tasks.loading import load_tasks

Verdict = Literal["same", "equivalent", "different", "not shown"]

TASKS = ("factual-choice", "factual-closed-book")
SAMPLES = 100
MARGIN = 0.03
"""Margin of a mean score: with 100 samples of equal scores, the 90% interval just fits."""
TOKEN_MARGIN = 0.01
"""Margin of the mean log-probability of a token, in nats: about 1% of perplexity."""
ROUNDING = 1e-3
"""Nats per token that count as rounding.

Float32 kernels differ by less than 1e-4; bfloat16 or 8 bits change more than 1e-3.
"""


@dataclass(frozen=True, slots=True)
class TokenDrift(Plain):
    """Differences (A minus B) of log-probabilities per token, in nats.

    Attributes:
        n: number of texts.
        mean: mean difference.
        low, high: its 90% interval, over samples, because the texts of one sample are similar.
        largest: largest difference.
        equivalent: whether the interval is within the margin.
        n_split: further texts that the two split into different numbers of tokens; only their
            scores are compared.
    """

    n: int
    mean: float
    low: float
    high: float
    largest: float
    equivalent: bool
    n_split: int


@dataclass(frozen=True, slots=True)
class TaskDrift(Plain):
    """The drift on one task.

    Attributes:
        n_missing: samples that one of the two did not answer.
        scores: equivalence of the first scorer's scores, None if both gave none.
        n_generated, n_same: texts that both generated, and how many of them are equal.
        informative: whether not all samples got the same score.
        scores_differ: whether the 95% interval of the scores' difference excludes 0.
    """

    task: str
    n: int
    n_missing: int
    failure: str
    n_generated: int
    n_same: int
    tokens: TokenDrift | None
    scores: Equivalence | None
    informative: bool
    scores_differ: bool

    @property
    def same(self) -> bool:
        """Whether nothing differs by more than rounding."""
        tokens = self.tokens
        scores = self.scores
        return (
            not self.n_missing
            and self.n_same == self.n_generated
            and (tokens is None or (tokens.largest <= ROUNDING and not tokens.n_split))
            and (scores is None or scores.difference == 0)
        )

    @property
    def verdict(self) -> Verdict:
        """What the task shows."""
        tokens = self.tokens
        if self.same:
            return "same"
        if self.scores_shown and (tokens is None or tokens.equivalent):
            return "equivalent"
        apart = tokens is not None and (
            tokens.low > TOKEN_MARGIN or tokens.high < -TOKEN_MARGIN
        )
        return "different" if apart or self.scores_differ else "not shown"

    @property
    def scores_shown(self) -> bool:
        """Whether the scores are equivalent, and could have shown that they are not."""
        return self.scores is not None and self.scores.equivalent and self.informative


@dataclass(frozen=True, slots=True)
class Drift(Plain):
    """The drift between two backends, `a` and `b`.

    `may_be_mixed` says whether their answers may be mixed in one comparison; `sentence` says it in
    words.
    """

    a: str
    b: str
    margin: float
    tasks: tuple[TaskDrift, ...]
    not_compared: tuple[str, ...]
    verdict: Verdict
    may_be_mixed: bool
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON, with each task's verdict."""
        tasks = [{**task.as_dict(), "verdict": task.verdict} for task in self.tasks]
        return {**Plain.as_dict(self), "tasks": tasks}


def measure_drift(
    a: Model,
    b: Model,
    *,
    tasks: Sequence[str] = TASKS,
    limit: int = SAMPLES,
    margin: float = MARGIN,
    say: Callable[[str], None] | None = None,
) -> Drift:
    """Send both models the same requests and compare their answers.

    Comparing a model with itself shows how far it repeats its own answers.

    Args:
        limit: samples of each task.
        margin: margin of the mean score.
        say: called with progress messages.

    Raises:
        ConfigurationError: the margin is outside (0, 1) or the limit below 2.
        AbilityError: the two share no ability that a task needs.
    """
    if not 0 < margin < 1 or limit < 2:
        raise ConfigurationError(
            "The margin must be between 0 and 1 and the limit 2 or more, not"
            f" {margin:g} and {limit}."
        )
    a.check()
    b.check()
    chat = "chat" in a.abilities & b.abilities
    measured: list[TaskDrift] = []
    left_out: list[str] = []
    say = say or (lambda sentence: None)
    for name in dict.fromkeys(tasks):
        loaded = load_tasks(name, chat=chat)
        missing = [
            f"{model.name} cannot answer '{ability}' requests"
            for model in (a, b)
            for ability in sorted(
                {need for task in loaded for need in task.strategy.needs}
                - model.abilities
            )
        ]
        if missing:
            left_out.append(f"{name}: {', '.join(missing)}")
            continue
        if "top_logprobs" in a.carries & b.carries and all(
            "generate" in task.strategy.needs for task in loaded
        ):
            with_tokens = load_tasks(
                name, chat=chat, overrides={"answer.top_logprobs": 0}
            )
            first = [
                run_blocking(partial(_ask, _chosen(with_tokens, limit)[:1], model, say))
                for model in (a, b)
            ]
            # Some servers accept the option and return nothing, or refuse it.
            if not any(_why(record) for records in first for record in records):
                loaded = with_tokens
        chosen = _chosen(loaded, limit)
        answers = []
        for model in (a, b):
            say(f"{model.name} is sent {len(chosen)} samples of {name}.")
            answers.append(run_blocking(partial(_ask, chosen, model, say)))
        answers_a, answers_b = answers
        units = _units(chosen)
        measured.append(_compared(name, answers_a, answers_b, units, margin=margin))
    if not measured:
        raise AbilityError(f"Nothing can be compared. {'; '.join(left_out)}.")
    verdict = _overall([task.verdict for task in measured])
    names = (f"{a.name} (A)", f"{b.name} (B)") if a.name == b.name else (a.name, b.name)
    sentence = _sentence(*names, verdict, margin, measured, left_out)
    mixed = verdict in ("same", "equivalent")
    return Drift(
        *names, margin, tuple(measured), tuple(left_out), verdict, mixed, sentence
    )


_NOBODY_ANSWERS = {ConnectionFailed.kind, AuthenticationFailed.kind, WrongModel.kind}
"""If every request fails like this, nothing is measured, and the other model gets no request."""

Chosen = list[tuple[Task, int]]
"""A task and the index of a sample in it."""


def _chosen(tasks: Sequence[Task], limit: int) -> Chosen:
    every = [(task, index) for task in tasks for index in range(len(task.samples))]
    return random.Random(0).sample(every, min(limit, len(every)))


def _units(chosen: Chosen) -> list[int]:
    """Return the cluster number of each chosen sample."""
    names = [
        (task.name, task.samples[index].cluster or index) for task, index in chosen
    ]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return [numbers[name] for name in names]


async def _ask(
    chosen: Chosen, model: Model, say: Callable[[str], None]
) -> Sequence[SampleRecord]:
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteStore.open(Path(folder)) as store,
    ):
        async with Engine(store, on_event=say) as engine:
            door = engine.door({"target": model})
            work = [
                evaluate_sample(task, index, task.samples[index], 0, door)
                for task, index in chosen
            ]
            records = await asyncio.gather(*work)
    failures = [record.failure for record in records if record.failure is not None]
    if (
        len(failures) == len(records)
        and {failure.kind for failure in failures} <= _NOBODY_ANSWERS
    ):
        raise RequestFailed(failures[-1])
    return records


def _compared(
    name: str,
    a: Sequence[SampleRecord],
    b: Sequence[SampleRecord],
    units: Sequence[int],
    *,
    margin: float,
) -> TaskDrift:
    reasons = [
        _why(record_a) or _why(record_b)
        for record_a, record_b in zip(a, b, strict=True)
    ]
    samples = [
        [] if why else list(_responses(record_a, record_b))
        for record_a, record_b, why in zip(a, b, reasons, strict=True)
    ]
    written = [
        (response_a.text, response_b.text)
        for response_a, response_b in chain(*samples)
        if response_a.log_likelihood is None
    ]
    values = np.array([[_score(record) for record in records] for records in (a, b)])
    finite = values[~np.isnan(values)]
    scores = None
    differ = False
    if (
        (~np.isnan(values)).all(axis=0).any()
        and (finite >= 0).all()
        and (finite <= 1).all()
    ):
        # An item undecided in both answers is left out of the comparison; one undecided in only one
        # is missing.
        missing = np.isnan(values) & ~np.isnan(values).all(axis=0)
        missing |= np.array([[_why(record) != "" for record in row] for row in (a, b)])
        test_equivalence = partial(
            equivalence_paired, *values, margin=margin, missing=missing, clusters=units
        )
        scores = test_equivalence()
        wide = test_equivalence(alpha=0.025)
        differ = wide.low > 0 or wide.high < 0
    return TaskDrift(
        name,
        len(a),
        sum(why != "" for why in reasons),
        next(filter(None, reasons), ""),
        len(written),
        sum(text_a == text_b for text_a, text_b in written),
        _tokens(samples, units),
        scores,
        len(set(finite)) > 1,
        differ,
    )


def _responses(
    record_a: SampleRecord, record_b: SampleRecord
) -> Iterator[tuple[Response, Response]]:
    assert record_a.answer is not None and record_b.answer is not None
    yield from zip(record_a.answer.responses, record_b.answer.responses, strict=False)


def _why(record: SampleRecord) -> str:
    if record.failure is not None:
        return record.failure.message
    return "" if record.answer is not None else "no answer"


def _score(record: SampleRecord) -> float:
    first = next(iter(record.scores.values()), None)
    return math.nan if first is None else first.value


def _tokens(
    samples: Sequence[Sequence[tuple[Response, Response]]], units: Sequence[int]
) -> TokenDrift | None:
    """Compare log-probabilities per token.

    For a log-likelihood it is the mean over its tokens; for a generation each token that both
    generated before they diverge.
    """
    means: list[tuple[float, float, int]] = []
    largest = 0.0
    split = 0
    n = 0
    for pairs, unit in zip(samples, units, strict=True):
        texts: list[tuple[float, float]] = []
        for response_a, response_b in pairs:
            if (
                response_a.log_likelihood is not None
                and response_a.tokens_scored != response_b.tokens_scored
            ):
                split += 1
            elif token_pairs := _log_probs(response_a, response_b):
                largest = max(
                    largest,
                    *(
                        abs(log_prob_a - log_prob_b)
                        for log_prob_a, log_prob_b in token_pairs
                    ),
                )
                texts.append(_mean(token_pairs))
        n += len(texts)
        if texts:
            means.append((*_mean(texts), unit))
    if len(means) < 2:
        return None
    ones, others, unit_numbers = zip(*means, strict=True)
    test = equivalence_paired(
        ones,
        others,
        margin=TOKEN_MARGIN,
        clusters=unit_numbers,
        value_range=None,
        binary=False,
    )
    mean = test.difference
    low = test.low
    high = test.high
    if math.isnan(low):  # the difference is the same in every sample
        low = high = mean
    return TokenDrift(
        n, mean, low, high, largest, max(-low, high) <= TOKEN_MARGIN, split
    )


def _log_probs(response_a: Response, response_b: Response) -> list[tuple[float, float]]:
    if response_a.log_likelihood is not None and response_b.log_likelihood is not None:
        count = response_a.tokens_scored or 1
        return [(response_a.log_likelihood / count, response_b.log_likelihood / count)]
    pairs = zip(response_a.tokens, response_b.tokens, strict=False)
    return [
        (token_a.log_prob, token_b.log_prob)
        for token_a, token_b in takewhile(
            lambda pair: pair[0].text == pair[1].text, pairs
        )
    ]


def _mean(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    ones, others = zip(*pairs, strict=True)
    return math.fsum(ones) / len(pairs), math.fsum(others) / len(pairs)


def _overall(verdicts: Sequence[Verdict]) -> Verdict:
    order: tuple[Verdict, ...] = ("different", "not shown", "equivalent", "same")
    return next(verdict for verdict in order if verdict in verdicts)


def _sentence(
    a: str,
    b: str,
    verdict: Verdict,
    margin: float,
    measured: Sequence[TaskDrift],
    left_out: Sequence[str],
) -> str:
    names = f"{a} and {b}"
    points = f"{100 * margin:g} points"
    unsure = [task for task in measured if task.verdict == "not shown"]
    conditions = [f"scores are equivalent within {points}"] * any(
        not task.scores_shown for task in unsure
    )
    if any(task.tokens is not None and not task.tokens.equivalent for task in unsure):
        conditions.append(f"mean log-probabilities are within {TOKEN_MARGIN:g}")
    texts = {
        "same": (
            f"{names} may be mixed in one comparison: nothing differs by more than"
            " rounding."
        ),
        "equivalent": (
            f"{names} may be mixed in a comparison of scores that looks for differences"
            f" of {points} or more: their scores are equivalent within {points} (two"
            " one-sided tests at 5%), although single answers differ."
        ),
        "different": (
            f"Do not mix {names} in one comparison: their scores or log-probabilities"
            " differ systematically."
        ),
        "not shown": (
            f"Do not mix {names} in one comparison: it was not shown that"
            f" {' and that '.join(conditions)}."
        ),
    }
    failed = sum(task.n_missing for task in measured)
    reason = next((task.failure for task in measured if task.failure), "")
    if failed == sum(task.n for task in measured):
        sentences = [
            f"Nothing is known about mixing {names}: no sample was answered by both"
            f" ({reason})."
        ]
    else:
        sentences = [texts[verdict]]
        if failed:
            sentences.append(
                f"On {failed} sample{'s' * (failed > 1)} one of the two or both failed"
                f" ({reason})."
            )
        if verdict == "not shown":
            blind = [
                task.task
                for task in unsure
                if not task.informative and task.n_missing < task.n
            ]
            sentences.append(
                f"Every sample of {', '.join(blind)} got the same score, so it cannot"
                " show a difference: name another --task."
                if blind
                else "A larger --limit may show it."
            )
        if silent := [
            task.task
            for task in measured
            if task.tokens is None and task.n_missing < task.n
        ]:
            sentences.append(
                f"No log-probabilities were compared on {', '.join(silent)}: fewer than"
                " two samples have them from both."
            )
    if left_out:
        sentences.append(f"Not compared: {'; '.join(left_out)}.")
    return " ".join(sentences)
