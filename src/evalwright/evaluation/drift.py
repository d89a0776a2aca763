"""Do two backends give the same answers to the same requests, so that their answers may be mixed in one comparison?

Both get the samples of two bundled tasks: one answered by log-likelihood, one by generation at temperature 0. What comes back is
compared in three ways: the log-probability of each token, the generated texts, the scores. Every request is sent now; nothing is
read from the store, because a server that was changed under the same name would be compared with its own past.
"""

from __future__ import annotations

import asyncio
import math
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evalwright.core.errors import AbilityError, ConfigurationError
from evalwright.core.plain import Plain
from evalwright.core.responses import Response
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.engine.engine import Engine
from evalwright.engine.sqlite import SqliteStore
from evalwright.evaluation.running import evaluate_sample, run_blocking
from evalwright.models.base import Model
from evalwright.statistics.equivalence import Equivalence, equivalence_paired
from evalwright.tasks.loading import load_tasks

Verdict = Literal["same", "equivalent", "different", "not shown"]

TASKS = ("factual-choice", "factual-closed-book")
SAMPLES = 100
MARGIN = 0.03
"""Of a mean score: with 100 samples that all score alike, the 90% interval just fits."""
TOKEN_MARGIN = 0.01
"""Of the mean log-probability of a token, in nats: about 1% of perplexity."""
ROUNDING = 1e-3
"""Nats a token; what float32 kernels differ by is below 1e-4, what bfloat16 or 8 bits change is above 1e-3."""


@dataclass(frozen=True, slots=True)
class TokenDrift(Plain):
    """Differences (A minus B) of log-probabilities a token, in nats, over `n` texts: mean with its 90% interval, and the largest.

    n_split: further texts that the two cut into another number of tokens, which are compared in nothing but scores.
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
    """One task. n_failed: samples that one of the two did not answer. scores: of the task's first scorer, None where none were given.

    n_generated, n_same: texts that both wrote, and those that are equal. informative: not every sample got one and the same score.
    """

    task: str
    n: int
    n_failed: int
    failure: str
    n_generated: int
    n_same: int
    tokens: TokenDrift | None
    scores: Equivalence | None
    informative: bool

    @property
    def same(self) -> bool:
        """Nothing differs by more than rounding."""
        tokens, scores = self.tokens, self.scores
        return (
            not self.n_failed
            and self.n_same == self.n_generated
            and (tokens is None or (tokens.largest <= ROUNDING and not tokens.n_split))
            and (scores is None or scores.difference == 0)
        )

    @property
    def verdict(self) -> Verdict:
        """What the task shows."""
        tokens, scores = self.tokens, self.scores
        if self.same:
            return "same"
        apart = tokens is not None and (tokens.low > TOKEN_MARGIN or tokens.high < -TOKEN_MARGIN)
        if apart or (scores is not None and (scores.low > 0 or scores.high < 0)):
            return "different"
        shown = scores is not None and scores.equivalent and self.informative
        return "equivalent" if shown and (tokens is None or tokens.equivalent) else "not shown"


@dataclass(frozen=True, slots=True)
class Drift(Plain):
    """Of two backends, `a` and `b`. may_be_mixed: whether their answers may be mixed in one comparison. sentence: that in words."""

    a: str
    b: str
    margin: float
    tasks: tuple[TaskDrift, ...]
    not_compared: tuple[str, ...]
    verdict: Verdict
    may_be_mixed: bool
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON, with each task's verdict."""
        tasks = [{**task.as_dict(), "verdict": task.verdict} for task in self.tasks]
        return {**Plain.as_dict(self), "tasks": tasks}


def measure_drift(
    a: Model, b: Model, *, tasks: Sequence[str] = TASKS, limit: int = SAMPLES, margin: float = MARGIN
) -> Drift:
    """Send both models the same requests and compare what comes back. limit: samples of each task.

    A model beside itself shows how far it repeats its own answers. Raises ConfigurationError for a margin outside (0, 1) or a
    limit below 2; AbilityError where the two have nothing in common that a task needs.
    """
    if not 0 < margin < 1 or limit < 2:
        raise ConfigurationError(
            f"The margin must be between 0 and 1 and the limit 2 or more, not {margin:g} and {limit}."
        )
    a.check()
    b.check()
    chat = "chat" in a.abilities & b.abilities
    measured: list[TaskDrift] = []
    left_out: list[str] = []
    for name in tasks:
        loaded = load_tasks(name, chat=chat)
        missing = [
            f"{model.name} cannot answer '{ability}' requests"
            for model in (a, b)
            for ability in sorted({need for task in loaded for need in task.strategy.needs} - model.abilities)
        ]
        if missing:
            left_out.append(f"{name}: {', '.join(missing)}")
            continue
        if "top_logprobs" in a.carries & b.carries and all(
            "generate" in task.strategy.needs for task in loaded
        ):
            more = load_tasks(name, chat=chat, overrides={"answer.top_logprobs": 0})
            first = [run_blocking(partial(_ask, _chosen(more, limit)[:1], model)) for model in (a, b)]
            # Some servers take the option and give nothing, or refuse it.
            if not any(_why(record) for records in first for record in records):
                loaded = more
        chosen = _chosen(loaded, limit)
        answers = [run_blocking(partial(_ask, chosen, model)) for model in (a, b)]
        measured.append(_compared(name, *answers, margin=margin))
    if not measured:
        raise AbilityError(f"Nothing can be compared. {'; '.join(left_out)}.")
    verdict = _overall([task.verdict for task in measured])
    names = (f"{a.name} (A)", f"{b.name} (B)") if a.name == b.name else (a.name, b.name)
    sentence = _sentence(*names, verdict, margin, measured, left_out)
    mixed = verdict in ("same", "equivalent")
    return Drift(*names, margin, tuple(measured), tuple(left_out), verdict, mixed, sentence)


Chosen = list[tuple[Task, int]]
"""A task and the place of a sample in it."""


def _chosen(tasks: Sequence[Task], limit: int) -> Chosen:
    every = [(task, place) for task in tasks for place in range(len(task.samples))]
    return random.Random(0).sample(every, min(limit, len(every)))


async def _ask(chosen: Chosen, model: Model) -> Sequence[SampleRecord]:
    with tempfile.TemporaryDirectory() as folder, SqliteStore.open(Path(folder)) as store:
        async with Engine(store) as engine:
            door = engine.door({"target": model})
            work = [evaluate_sample(task, place, task.samples[place], 0, door) for task, place in chosen]
            return await asyncio.gather(*work)


def _compared(name: str, a: Sequence[SampleRecord], b: Sequence[SampleRecord], *, margin: float) -> TaskDrift:
    both = [(one, other) for one, other in zip(a, b, strict=True) if not (_why(one) or _why(other))]
    reasons = [why for pair in zip(a, b, strict=True) for why in [_why(pair[0]) or _why(pair[1])] if why]
    pairs = [pair for one, other in both for pair in _responses(one, other)]
    written = [(one.text, other.text) for one, other in pairs if one.log_likelihood is None]
    values = [[_score(record) for record in records] for records in (a, b)]
    known = [value for row in values for value in row if not math.isnan(value)]
    scores = None
    if known and all(0 <= value <= 1 for value in known):
        # What rules leave undecided in both answers is no item of the comparison; in one of them it is.
        missing = np.isnan(values) & ~np.isnan(values).all(axis=0)
        missing |= [[_why(one) != "" for one in row] for row in (a, b)]
        scores = equivalence_paired(*values, margin=margin, missing=missing)
    return TaskDrift(
        name, len(a), len(reasons), reasons[0] if reasons else "", len(written),
        sum(one == other for one, other in written), _tokens(pairs), scores, len(set(known)) > 1,
    )  # fmt: skip


def _responses(one: SampleRecord, other: SampleRecord) -> Iterator[tuple[Response, Response]]:
    assert one.answer is not None and other.answer is not None
    yield from zip(one.answer.responses, other.answer.responses, strict=False)


def _why(record: SampleRecord) -> str:
    if record.failure is not None:
        return record.failure.message
    return "" if record.answer is not None else "no answer"


def _score(record: SampleRecord) -> float:
    first = next(iter(record.scores.values()), None)
    return math.nan if first is None else first.value


def _tokens(pairs: Sequence[tuple[Response, Response]]) -> TokenDrift | None:
    """Of a log-likelihood its mean over the tokens; of a generation each token that both wrote before they part."""
    means: list[tuple[float, float]] = []
    largest, split = 0.0, 0
    for one, other in pairs:
        if one.log_likelihood is not None and other.log_likelihood is not None:
            if one.tokens_scored != other.tokens_scored:
                split += 1
                continue
            each = [
                (
                    one.log_likelihood / (one.tokens_scored or 1),
                    other.log_likelihood / (other.tokens_scored or 1),
                )
            ]
        else:
            each = []
            for x, y in zip(one.tokens, other.tokens, strict=False):
                if x.text != y.text:
                    break
                each.append((x.log_prob, y.log_prob))
        if each:
            largest = max(largest, *(abs(x - y) for x, y in each))
            means.append(
                (math.fsum(x for x, _ in each) / len(each), math.fsum(y for _, y in each) / len(each))
            )
    if len(means) < 2:
        return None
    ones, others = zip(*means, strict=True)
    if ones == others:
        return TokenDrift(len(means), 0.0, 0.0, 0.0, largest, True, split)
    found = equivalence_paired(ones, others, margin=TOKEN_MARGIN, value_range=None, binary=False)
    return TokenDrift(len(means), found.difference, found.low, found.high, largest, found.equivalent, split)


def _overall(found: Sequence[Verdict]) -> Verdict:
    order: tuple[Verdict, ...] = ("different", "not shown", "equivalent", "same")
    return next(verdict for verdict in order if verdict in found)


def _sentence(
    a: str, b: str, verdict: Verdict, margin: float, measured: Sequence[TaskDrift], left_out: Sequence[str]
) -> str:
    names = f"{a} and {b}"
    points = f"{100 * margin:g} points"
    texts = {
        "same": f"{names} may be mixed in one comparison: nothing differs by more than rounding.",
        "equivalent": f"{names} may be mixed in a comparison of scores that looks for differences of {points} or more: their "
        f"scores are equivalent within {points} (two one-sided tests at 5%), although single answers differ.",
        "different": f"Do not mix {names} in one comparison: their scores or log-probabilities differ systematically.",
        "not shown": f"Do not mix {names} in one comparison: answers differ, and that scores are equivalent within {points} was "
        f"not shown.",
    }
    parts = [texts[verdict]]
    failed = sum(task.n_failed for task in measured)
    if failed:
        reason = next(task.failure for task in measured if task.failure)
        parts.append(f"{failed} samples were not answered by both ({reason}).")
    if verdict == "not shown":
        blind = [task.task for task in measured if task.verdict == verdict and not task.informative]
        parts.append(
            f"Every sample of {', '.join(blind)} got the same score, so it cannot show a difference: name another --task."
            if blind
            else "A larger --limit or --margin may show it."
        )
    if left_out:
        parts.append(f"Not compared: {'; '.join(left_out)}.")
    return " ".join(parts)
