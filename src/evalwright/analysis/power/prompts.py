"""What a task would send, read without asking: requests an item, and their tokens by the model's own tokenizer or a guess."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from evalwright.analysis.task_checks.material import all_requests
from evalwright.core.errors import EvalwrightError, MissingExtra, TaskError
from evalwright.core.requests import Generate, LogLikelihood, Prompt, Request, RollingLogLikelihood
from evalwright.core.tasks import Task
from evalwright.engine.key import request_key
from evalwright.evaluation.running import run_blocking
from evalwright.models.base import LocalModel, Model
from evalwright.models.local.tokens import DEFAULT_MAX_TOKENS, Reader, encode_pair, encode_text

MOST_READ = 200
"""Items whose prompts are read; a larger task is judged by that many of its items, drawn by the seed."""

BYTES_PER_TOKEN = 4.0, 2.5, 6.0
"""A guess for a tokenizer that is not shown, with its pessimistic and optimistic bounds: bytes of UTF-8 a token."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The requests of some items of a task, an entry per item: how many, tokens in, and the most tokens out.

    most_out: None where a request leaves the limit to the model. exact: counted by the model's own tokenizer. every: all
    items were read. counted_by: the tokenizer, in words. unread: items whose prompt could not be made or counted. stored: how
    many of the requests the store answers, None where not all were made (a part of the items, the first of several draws).
    """

    requests: tuple[int, ...]
    input_tokens: tuple[float, ...]
    most_out: tuple[int, ...] | None
    exact: bool
    every: bool
    counted_by: str
    unread: int
    stored: int | None


def read_prompts(task: Task, model: Model, seed: int, known: Callable[[bytes], bool]) -> Prompts:
    """Read up to MOST_READ items of a task as `model` would get them. Nothing is asked, and no weights are loaded.

    known: whether the store has the answer to the request of that key.
    """
    total = len(task.samples)
    every = total <= MOST_READ
    places = range(total) if every else random.Random(seed).sample(range(total), MOST_READ)
    reader, counted_by = _reader(model)
    requests, tokens, most, unread = [], [], [], 0
    limited, stored = True, 0
    # What cannot be asked will fail in the run too, and `tasks check` says why.
    for asked, _ in run_blocking(lambda: all_requests(task, [task.samples[place] for place in places])):
        try:
            if not asked:
                raise TaskError("no request is sent")
            into = sum(_tokens(request, reader) for request in asked)
        except EvalwrightError:
            unread += 1
            continue
        room = [_room(request, model) for request in asked]
        limited = limited and None not in room
        stored += sum(known(request_key(model.fingerprint, request.payload())) for request in asked)
        requests.append(len(asked))
        tokens.append(into)
        most.append(sum(one or 0 for one in room))
    return Prompts(
        tuple(requests),
        tuple(tokens),
        tuple(most) if limited else None,
        reader is not None,
        every,
        counted_by,
        unread,
        stored if every and task.draws == 1 else None,
    )


def _reader(model: Model) -> tuple[Reader | None, str]:
    reader, why = None, ""
    try:
        reader = model.reader()
    except (MissingExtra, ImportError, OSError) as error:
        why = f" ({error})"
    guessed = f"estimated at {BYTES_PER_TOKEN[0]:g} characters a token{why}"
    return reader, guessed if reader is None else "counted by its tokenizer"


def _tokens(request: Request, reader: Reader | None) -> float:
    if reader is None:
        return len(_text(request).encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN[0]
    if isinstance(request, Generate):
        text, rules = reader.render(request.prompt)
        return len(encode_text(reader.encoder, rules, text))
    if isinstance(request, LogLikelihood):
        text, rules = reader.render(request.context)
        context, continuation = encode_pair(reader.encoder, rules, text, request.continuation)
        return len(context) + len(continuation)
    return len(encode_text(reader.encoder, reader.rules, _text(request)))


def _text(request: Request) -> str:
    if isinstance(request, Generate):
        return _prompt(request.prompt)
    if isinstance(request, LogLikelihood):
        return _prompt(request.context) + request.continuation
    return request.text if isinstance(request, RollingLogLikelihood) else str(request.payload())


def _prompt(prompt: Prompt) -> str:
    return prompt if isinstance(prompt, str) else "\n".join(f"{turn.role}\n{turn.text}" for turn in prompt)


def _room(request: Request, model: Model) -> int | None:
    """The most tokens that the answer may have; None where only the model knows."""
    if not isinstance(request, Generate):
        return 0
    if request.max_tokens is None and isinstance(model, LocalModel):
        return DEFAULT_MAX_TOKENS
    return request.max_tokens
