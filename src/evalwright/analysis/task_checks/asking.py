"""The strategy answered by a script, and its answer scored: what would this reply be worth?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from evalwright.analysis.task_checks.material import Material, answered
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.requests import Classify, LogLikelihood, Request
from evalwright.core.responses import Response, TokenLogProb
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scorer, Task
from evalwright.evaluation.score_checks import checked_score
from evalwright.tasks.dialects import is_dialect

Reply = Callable[[int, Request], Response]
"""From a request's place among those of its sample to the response."""

UNSCORED = frozenset({"perplexity"})
"""Scorers whose worth is a likelihood, so that no answer is right."""
SHAPED = frozenset({"procedure"})
"""Scorers whose targets are no answers as they stand."""

_LIKELY = -1e-3
_UNLIKELY = -1e3
_UNCONDITIONAL = -50.0


def saying(text: str) -> Reply:
    """Every request is answered with this text."""
    return lambda place, request: Response(
        text,
        "",
        "stop",
        log_likelihood=_LIKELY,
        is_greedy=True,
        tokens=(TokenLogProb(text, _LIKELY),),
    )


def preferring(choice: int, repeats: int = 1) -> Reply:
    """The likelihood of one choice is far above all others, also per character, byte or token; a
    judge is certain of it.
    """

    def reply(place: int, request: Request) -> Response:
        text = request.continuation if isinstance(request, LogLikelihood) else ""
        if isinstance(request, Classify):
            return Response(values=(float(choice == 0), float(choice == 1)))
        preferred = place // repeats == choice
        value = (
            _LIKELY
            if preferred
            else _UNLIKELY * (1 + len(text.encode("utf-8", "surrogatepass")))
        )
        if isinstance(request, LogLikelihood) and request.context == "":
            value = _UNCONDITIONAL
        return Response(
            log_likelihood=value,
            is_greedy=preferred,
            tokens_scored=max(1, len(text.split())),
        )

    return reply


def continuing(greedy: bool) -> Reply:
    """Every continuation is, or is not, what greedy decoding gives."""
    value = _LIKELY if greedy else _UNLIKELY
    return lambda place, request: Response(
        log_likelihood=value, is_greedy=greedy, tokens_scored=1
    )


def judged(material: Material) -> tuple[Scorer | None, str]:
    """The scorer of the main metric, or None and why no answer can be judged without a model."""
    task = material.task
    if not task.scorers:
        return None, "the task has no scorer"
    wanted = [
        one
        for one in task.scorers
        if task.metrics and one.name == task.metrics[0].scorer
    ]
    scorer = (*wanted, *task.scorers)[0]
    reason = unjudged(task, scorer)
    return (None, reason) if reason else (scorer, "")


def unjudged(task: Task, scorer: Scorer) -> str:
    """Why a scorer's worth of a right answer is not known here; "" where it is 1."""
    if scorer.asks:
        what = "uses a model" if scorer.roles else "uses a model or runs programs"
        return f"{scorer.name} {what}, so it cannot be checked here"
    if scorer.kind in SHAPED:
        return (
            f"{scorer.name} reads an answer of another shape than the target, so no"
            " gold answer is at hand"
        )
    if scorer.kind in UNSCORED:
        return (
            f"{scorer.name} measures a likelihood, which has no right or wrong answer"
        )
    if is_dialect(scorer.kind):
        own = [spec for spec in task.metrics if spec.scorer == scorer.name]
        if not own or own[0].kind != "accuracy":
            what = f"'{own[0].label}'" if own else "the task's own"
            return (
                f"the first metric is {what}, and its value for a right answer is"
                " unknown"
            )
    return ""


def worths(
    material: Material, scorer: Scorer, asked: Iterable[tuple[Sample, Reply]]
) -> list[float]:
    """The worth of each reply.

    Raises ScoringError that names the first sample where strategy or scorer fails.
    """
    task = material.task
    out = []

    async def work() -> None:
        for sample, reply in asked:
            out.append(_value(scorer, sample, await _answer(task, sample, reply)))

    asyncio.run(work())
    return out


def preferences(material: Material, scorer: Scorer) -> list[tuple[Sample, int, float]]:
    """For each sample and option the worth of finding that option the most likely.

    Raises as `worths` does; asked once.
    """
    found = material.preferred.get(scorer.name)
    if found is None:
        # of each request, in a row
        repeats = int(getattr(material.task.strategy, "repeats", 1) or 1)
        pairs = [
            (sample, place)
            for sample in material.askable
            for place in range(len(sample.choices))
        ]
        replies = {place: preferring(place, repeats) for _, place in pairs}
        values = worths(
            material, scorer, ((sample, replies[place]) for sample, place in pairs)
        )
        found = [
            (sample, place, value)
            for (sample, place), value in zip(pairs, values, strict=True)
        ]
        material.preferred[scorer.name] = found
    return found


async def _answer(task: Task, sample: Sample, reply: Reply) -> Answer:
    places = count()

    async def ask(role: str, request: Request) -> Response:
        return reply(next(places), request)

    try:
        return await answered(task, sample, ask)
    except Exception as error:
        raise ScoringError(
            f"the strategy fails on the sample '{sample.id}': {type(error).__name__}:"
            f" {error}"
        ) from error


def value_of(scorer: Scorer, sample: Sample, text: str) -> float:
    """The worth of a text, without a strategy. Raises ScoringError."""
    return _value(scorer, sample, Answer(text=text, responses=(Response(text=text),)))


def _value(scorer: Scorer, sample: Sample, answer: Answer) -> float:
    try:
        found = scorer.function(sample, answer)
        return checked_score(found, scorer.name, sample.id).value
    except ConfigurationError:
        raise
    except Exception as error:
        reason = (
            str(error)
            if isinstance(error, ScoringError)
            else f"{type(error).__name__}: {error}"
        )
        raise ScoringError(
            f"{scorer.name} fails on the sample '{sample.id}': {reason}"
        ) from error


def cited(sample: Sample, text: str) -> str:
    """A text with the citations that the sample wants."""
    citations: Sequence[object] = sample.metadata.get("citations") or ()
    return text + "".join(f" [{name}]" for name in citations)
