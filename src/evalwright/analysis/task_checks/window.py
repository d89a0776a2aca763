"""With a model: do prompt and answer fit into its context, and does a text get one BOS?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalwright.analysis.task_checks.findings import (
    Finding,
    counted,
    fault,
    note,
    ok,
    points,
    quoted,
    skipped,
)
from evalwright.analysis.task_checks.material import Material
from evalwright.core.errors import EvalwrightError
from evalwright.core.requests import Generate, LogLikelihood
from evalwright.models.base import Model

if TYPE_CHECKING:
    from evalwright.models.local.tokens import Reader

_CHECK = "context"


def check_window(material: Material, model: Model) -> Iterator[Finding]:
    """Verdicts on the requests as this model would read them. A model that keeps its tokenizer to itself is skipped."""
    reader = model.reader()
    if reader is None:
        yield skipped(
            _CHECK, f"{model.name} has no tokenizer here, so it is unknown what fits into its context"
        )
        return
    cut: list[str] = []
    short: list[str] = []
    twice: list[str] = []
    refused: dict[str, str] = {}
    longest = 0
    for sample, asked in zip(material.samples, material.requests, strict=True):
        try:
            found = [
                _measured(reader, request)
                for request in asked
                if isinstance(request, Generate | LogLikelihood)
            ]
        except EvalwrightError as error:
            refused[sample.id] = str(error)
            continue
        longest = max([longest, *(tokens for tokens, _, _ in found)])
        limit = reader.rules.max_length
        if any(tokens > limit for tokens, _, _ in found):
            cut.append(sample.id)
        elif any(tokens + room > limit for tokens, room, _ in found):
            short.append(sample.id)
        if any(double for _, _, double in found):
            twice.append(sample.id)
    yield from _verdicts(material, model, reader, longest, cut, short)
    if twice:
        yield fault(_CHECK, f"{counted(len(twice), 'prompt')} would begin with two BOS tokens", twice)
    if refused:
        reason = quoted(next(iter(refused.values())))
        yield fault(
            _CHECK, f"{model.name} cannot take {counted(len(refused), 'sample')} ({reason})", list(refused)
        )


def _verdicts(
    material: Material, model: Model, reader: Reader, longest: int, cut: list[str], short: list[str]
) -> Iterator[Finding]:
    n, limit = len(material.samples), reader.rules.max_length
    holds = f"the context of {model.name} has {limit:,} tokens, the longest prompt has {longest:,}"
    if cut:
        yield fault(_CHECK, f"{holds}: {points(len(cut) / n)} of 100 samples are cut or refused", cut)
    if short:
        yield fault(
            _CHECK,
            f"{holds}: with the answer's token limit, {points(len(short) / n)} of 100 samples do not fit",
            short,
        )
    if not cut and not short:
        yield ok(_CHECK, holds)
    if any(
        isinstance(asked[0], Generate) and asked[0].max_tokens is None for asked in material.requests if asked
    ):
        yield note(_CHECK, "the task leaves the answer's length to the model, so it is not counted")


def _measured(reader: Reader, request: Generate | LogLikelihood) -> tuple[int, int, bool]:
    """Tokens before the answer (of a likelihood, all that are put in), room that the answer may take, and whether BOS is doubled."""
    from evalwright.models.local.tokens import encode_pair, encode_text

    prompt = request.prompt if isinstance(request, Generate) else request.context
    text, rules = reader.render(prompt)
    bos = rules.bos_token
    doubled = bos is not None and reader.encoder.encode(text, rules.add_special_tokens)[:2] == [bos, bos]
    if isinstance(request, Generate):
        return len(encode_text(reader.encoder, rules, text)), request.max_tokens or 0, doubled
    context, continuation = encode_pair(reader.encoder, rules, text, request.continuation)
    # The last token is predicted and never put in.
    return len(context) + len(continuation) - 1, 0, doubled
