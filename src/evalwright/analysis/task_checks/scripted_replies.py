"""Runs a task's strategy on scripted replies and scores the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from evalwright.analysis.task_checks.material import Material, answer_sample
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.requests import Classify, LogLikelihood, Request
from evalwright.core.responses import Response, TokenLogProb
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scorer, Task
from evalwright.evaluation.score_checks import checked_score
from evalwright.tasks.dialects import is_dialect

Reply = Callable[[int, Request], Response]
"""A function from a request, and its index among those of its sample, to the response."""

UNSCORED = frozenset({"perplexity"})
"""Scorers that measure a likelihood, so that there is no right answer."""
SHAPED = frozenset({"procedure"})
"""Scorers whose targets cannot be used as answers."""

_LIKELY = -1e-3
_UNLIKELY = -1e3
_UNCONDITIONAL = -50.0


def reply_with(text: str) -> Reply:
    """Create a reply that answers every request with this text."""
    return lambda request_index, request: Response(
        text,
        "",
        "stop",
        log_likelihood=_LIKELY,
        is_greedy=True,
        tokens=(TokenLogProb(text, _LIKELY),),
    )


def prefer_option(choice: int, repeats: int = 1) -> Reply:
    """Create a reply that makes one option by far the most likely, under any normalisation.

    A judge is certain of it.
    """

    def reply(request_index: int, request: Request) -> Response:
        text = request.continuation if isinstance(request, LogLikelihood) else ""
        if isinstance(request, Classify):
            return Response(values=(float(choice == 0), float(choice == 1)))
        preferred = request_index // repeats == choice
        log_likelihood = (
            _LIKELY
            if preferred
            else _UNLIKELY * (1 + len(text.encode("utf-8", "surrogatepass")))
        )
        if isinstance(request, LogLikelihood) and request.context == "":
            log_likelihood = _UNCONDITIONAL
        return Response(
            log_likelihood=log_likelihood,
            is_greedy=preferred,
            tokens_scored=max(1, len(text.split())),
        )

    return reply


def continue_greedily(greedy: bool) -> Reply:
    """Create a reply that says whether every continuation is what greedy decoding gives."""
    log_likelihood = _LIKELY if greedy else _UNLIKELY
    return lambda request_index, request: Response(
        log_likelihood=log_likelihood, is_greedy=greedy, tokens_scored=1
    )


def find_judging_scorer(material: Material) -> tuple[Scorer | None, str]:
    """Return the scorer of the main metric, if it can score answers without a model.

    Otherwise, None and the reason.
    """
    task = material.task
    if not task.scorers:
        return None, "the task has no scorer"
    main_scorers = [
        scorer
        for scorer in task.scorers
        if task.metrics and scorer.name == task.metrics[0].scorer
    ]
    scorer = (*main_scorers, *task.scorers)[0]
    reason = explain_unjudged(task, scorer)
    return (None, reason) if reason else (scorer, "")


def explain_unjudged(task: Task, scorer: Scorer) -> str:
    """Explain why a scorer's value for a right answer is unknown here; "" if it is 1."""
    if scorer.asks:
        reason = "uses a model" if scorer.roles else "uses a model or runs programs"
        return f"{scorer.name} {reason}, so it cannot be checked here"
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
        own_metrics = [spec for spec in task.metrics if spec.scorer == scorer.name]
        if not own_metrics or own_metrics[0].kind != "accuracy":
            reason = f"'{own_metrics[0].label}'" if own_metrics else "the task's own"
            return (
                f"the first metric is {reason}, and its value for a right answer is"
                " unknown"
            )
    return ""


def score_replies(
    material: Material, scorer: Scorer, replies: Iterable[tuple[Sample, Reply]]
) -> list[float]:
    """Score each scripted reply.

    Raises:
        ScoringError: strategy or scorer fails on a sample, which is named.
    """
    task = material.task
    scores = []

    async def work() -> None:
        for sample, reply in replies:
            scores.append(
                _score_answer(scorer, sample, await _run_strategy(task, sample, reply))
            )

    asyncio.run(work())
    return scores


def score_preferences(
    material: Material, scorer: Scorer
) -> list[tuple[Sample, int, float]]:
    """Score each option of each sample as if it were the most likely one; computed once."""
    preferred = material.preferred.get(scorer.name)
    if preferred is None:
        # number of consecutive requests per option
        repeats = int(getattr(material.task.strategy, "repeats", 1) or 1)
        pairs = [
            (sample, option)
            for sample in material.askable
            for option in range(len(sample.choices))
        ]
        replies = {option: prefer_option(option, repeats) for _, option in pairs}
        values = score_replies(
            material, scorer, ((sample, replies[option]) for sample, option in pairs)
        )
        preferred = [
            (sample, option, score)
            for (sample, option), score in zip(pairs, values, strict=True)
        ]
        material.preferred[scorer.name] = preferred
    return preferred


async def _run_strategy(task: Task, sample: Sample, reply: Reply) -> Answer:
    places = count()

    async def ask(role: str, request: Request) -> Response:
        return reply(next(places), request)

    try:
        return await answer_sample(task, sample, ask)
    except Exception as error:
        raise ScoringError(
            f"the strategy fails on the sample '{sample.id}': {type(error).__name__}:"
            f" {error}"
        ) from error


def score_text(scorer: Scorer, sample: Sample, text: str) -> float:
    """Score a text without running a strategy. Raises ScoringError."""
    return _score_answer(
        scorer, sample, Answer(text=text, responses=(Response(text=text),))
    )


def _score_answer(scorer: Scorer, sample: Sample, answer: Answer) -> float:
    try:
        score = scorer.function(sample, answer)
        return checked_score(score, scorer.name, sample.id).value
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


def add_citations(sample: Sample, text: str) -> str:
    """Append the citations that the sample requires to a text."""
    citations: Sequence[object] = sample.metadata.get("citations") or ()
    return text + "".join(f" [{name}]" for name in citations)
