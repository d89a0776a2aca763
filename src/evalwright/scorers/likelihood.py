"""Scores read off log-probabilities: greedy continuation, and the likelihood of a whole text."""

from __future__ import annotations

import re

from evalwright.core.errors import ScoringError
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score

_SPACES = re.compile(r"\s+")


def likelihood(sample: Sample, answer: Answer) -> Score:
    """Score 1.0 if greedy decoding would give the continuation, else 0.0.

    It would if every token of it was the model's most probable one. Parts: "log_likelihood"
    (natural logarithm, summed), "characters" (Unicode code points) and "bytes" (UTF-8) of the
    continuation's text, and "tokens" if the model states how many it scored.

    Raises:
        ScoringError: the model does not state whether the continuation is greedy.
    """
    response = _first(answer)
    if response.is_greedy is None:
        raise ScoringError(
            "The model's reply does not say whether the continuation is its most"
            " probable one."
        )
    parts: dict[str, float] = {
        "log_likelihood": _log_likelihood(answer, response),
        "characters": float(len(answer.text)),
        "bytes": float(len(answer.text.encode("utf-8", "surrogatepass"))),
    }
    if response.tokens_scored is not None:
        parts["tokens"] = float(response.tokens_scored)
    greedy = response.is_greedy
    return Score(
        float(greedy),
        "correct" if greedy else "incorrect",
        (
            "greedy decoding gives the target"
            if greedy
            else "greedy decoding leaves the target"
        ),
        parts,
    )


def perplexity(sample: Sample, answer: Answer) -> Score:
    r"""Score the text's log-likelihood per token (natural logarithm; at most 0, higher is better).

    Parts: "log_likelihood" (summed), "tokens", "words", "bytes" (UTF-8), from which the perplexity
    metrics are computed. If the model does not state how many tokens it scored, there is no part
    "tokens" and the value is per byte. Words are counted as in the published word perplexities,
    `len(re.split(r"\s+", text))`: outer white space adds an empty word.

    Raises:
        ScoringError: nothing was scored.
    """
    response = _first(answer)
    tokens = response.tokens_scored
    size = len(answer.text.encode("utf-8", "surrogatepass"))
    if tokens == 0 or not size:
        raise ScoringError(
            "The model scored no token of this text, so it has no perplexity."
        )
    total = _log_likelihood(answer, response)
    parts = {"log_likelihood": total}
    if tokens is not None:
        parts["tokens"] = float(tokens)
    parts |= {"words": float(len(_SPACES.split(answer.text))), "bytes": float(size)}
    explanation = (
        "" if tokens else "per byte: the model does not say how many tokens it scored"
    )
    return Score(total / (tokens or size), explanation=explanation, parts=parts)


def _first(answer: Answer) -> Response:
    if not answer.responses:
        raise ScoringError("There is no response whose log-likelihood could be read.")
    return answer.responses[0]


def _log_likelihood(answer: Answer, response: Response) -> float:
    log_likelihood = (
        answer.log_likelihoods[0] if answer.log_likelihoods else response.log_likelihood
    )
    if log_likelihood is None:
        raise ScoringError(
            "The answer has no log-likelihood; use a likelihood strategy for this"
            " scorer."
        )
    return log_likelihood
