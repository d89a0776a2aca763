"""What asking takes: what a task would send, read without asking; and requests, tokens, money and
time, each with bounds and what it rests on.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.power.forecasts import Amount, ModelForecast
from evalwright.analysis.power.settings import Aim
from evalwright.analysis.power.variances import ASSUMED
from evalwright.analysis.task_checks.material import all_requests
from evalwright.analysis.words import count, counted, duration
from evalwright.core.errors import EvalwrightError, MissingExtra, TaskError
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Prompt,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.tasks import Task
from evalwright.engine.key import request_key
from evalwright.evaluation.running import run_blocking
from evalwright.models.base import LocalModel, Model, RemoteModel
from evalwright.models.local.tokens import (
    DEFAULT_MAX_TOKENS,
    Reader,
    encode_pair,
    encode_text,
)
from evalwright.models.remote.prices import Price, warn_if_old
from evalwright.runs.measurements import Measured, Pace
from evalwright.statistics import mean_interval


@dataclass(frozen=True, slots=True)
class ModelBasis:
    """What is known of one model on one task before any request.

    own: a run of this very model; other: a run of another one, whose answers are of a like length.
    pace: of the own run. judges: requests to other roles for each of the model's own. price: None
    where none is known.
    """

    model: Model
    prompts: Prompts
    own: Measured | None
    other: Measured | None
    pace: Pace | None
    judges: float
    price: Price | None


def known_price(model: Model) -> Price | None:
    """What the table of prices or a person's own file says of a model, None where neither does."""
    price = model.price if isinstance(model, RemoteModel) else None
    if price is not None:
        warn_if_old(price)
    return price


def usage_of(known: ModelBasis, n_answers: int, n_all: int, aim: Aim) -> ModelForecast:
    """What `n_answers` answers of one model to one task take, out of the `n_all` that the whole
    task would.
    """
    into = _input_tokens(known, n_all, aim.level)
    out = _output_tokens(known, n_all, aim)
    of_one = (
        _requests(known, n_all, aim.level),
        into,
        out,
        _money(known, into, out, n_all, aim.level),
    )
    requests, into, out, money = (amount.times(n_answers) for amount in of_one)
    return ModelForecast(
        requests, into, out, money, _seconds(known, requests), known.prompts.stored
    )


def add_up(usages: Sequence[ModelForecast]) -> ModelForecast:
    """What several tasks of one model take together."""
    names = ("requests", "input_tokens", "output_tokens", "money", "seconds")
    sums = {name: total([getattr(usage, name) for usage in usages]) for name in names}
    looked_up = [usage.stored for usage in usages if usage.stored is not None]
    return ModelForecast(
        **sums, stored=sum(looked_up) if len(looked_up) == len(usages) else None
    )


def total(amounts: Sequence[Amount]) -> Amount:
    """The sum. Bounds add up, which is wider than it must be; unknown where a part is unknown."""
    unknown = [amount for amount in amounts if not amount.known]
    basis = "; ".join(dict.fromkeys(amount.basis for amount in unknown or amounts))
    if unknown:
        return Amount(None, basis=basis)
    return Amount(
        _sum([amount.value for amount in amounts]),
        (
            None
            if all(amount.low is None for amount in amounts)
            else _sum([one.least for one in amounts])
        ),
        (
            None
            if all(amount.high is None for amount in amounts)
            else _sum([one.most for one in amounts])
        ),
        basis,
    )


def _sum(parts: Sequence[float | None]) -> float | None:
    """None where a part is not known."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _mean(values: Any, basis: str, level: float, n_all: int | None = None) -> Amount:
    """The mean of one number per answer with its t limits; without limits where all are alike.

    n_all: the answers there are, of which these were drawn; the more of them are known, the closer
    the limits.
    """
    found = mean_interval(values, value_range=None, level=level)
    # Of N, n of which were drawn without replacement, only the others are unknown: the variance
    # gets 1 - n / N (Cochran 1977, chapter 2).
    factor = (
        1.0
        if n_all is None
        else math.sqrt(max(0.0, 1.0 - found.n / max(n_all, len(values), 1)))
    )
    low = found.value - factor * (found.value - found.low)
    high = found.value + factor * (found.high - found.value)
    if math.isnan(low) or low == high:
        return Amount(found.value, basis=basis)
    return Amount(found.value, max(0.0, low), high, basis)


def _requests(known: ModelBasis, n_all: int, level: float) -> Amount:
    for source, population in ((known.own, n_all), (known.other, None)):
        if source is not None and len(source.requests):
            return _mean(source.requests, _measured(source), level, population)
    return _of_prompts(
        known.prompts, known.prompts.requests, "as the task asks", n_all, level
    )


def _input_tokens(known: ModelBasis, n_all: int, level: float) -> Amount:
    prompts = known.prompts
    own = known.own
    if own is not None and own.counts_tokens:
        return _mean(own.input_tokens, _measured(own), level, n_all)
    amount = _of_prompts(
        prompts, prompts.input_tokens, prompts.counted_by, n_all, level
    )
    if prompts.exact or amount.value is None:
        return amount
    typical, few, many = BYTES_PER_TOKEN
    low = (amount.least or 0.0) * typical / many
    high = (amount.most or 0.0) * typical / few
    return Amount(amount.value, low, high, amount.basis)


def _output_tokens(known: ModelBasis, n_all: int, aim: Aim) -> Amount:
    level = aim.level
    if "output_tokens" in aim.assumed:
        return Amount(aim.assumed["output_tokens"], basis=ASSUMED)
    for source, population in ((known.own, n_all), (known.other, None)):
        if source is not None and source.counts_tokens:
            whose = "" if source is known.own else ", another model"
            return _mean(
                source.output_tokens, _measured(source) + whose, level, population
            )
    most = known.prompts.most_out
    if most is None:
        return Amount(
            None, basis="the task leaves the length of an answer to the model"
        )
    amount = _of_prompts(known.prompts, most, "the task's limit", n_all, level)
    if not amount.value:
        return amount.because("no text is generated, only likelihoods are computed")
    return Amount(
        None,
        0.0,
        amount.most,
        "not known before answers are seen; at most the task's limit",
    )


def _of_prompts(
    prompts: Prompts, values: Sequence[float], basis: str, n_all: int, level: float
) -> Amount:
    if not values:
        return Amount(None, basis="no prompt of the task could be read")
    if prompts.every:
        return Amount(sum(values) / len(values), basis=basis)
    return _mean(values, f"{basis}, on {count(len(values))} items", level, n_all)


def _money(
    known: ModelBasis, into: Amount, out: Amount, n_all: int, level: float
) -> Amount:
    """US dollars for one answer: by the price given or known, else as the replies of a run named
    it.

    What a provider takes less for tokens in its cache, or more for long prompts, is not forecast.
    """
    price = known.price
    own = known.own
    if price is not None:
        parts = [into.times(price.input / 1e6), out.times(price.output / 1e6)]
        parts.append(Amount(price.request))
        amount = total(parts if price.output else [parts[0], parts[2]])
        said = f"${price.input:g} in and ${price.output:g} out for a million tokens"
        if price.as_of:
            said += f", prices of {price.as_of}"
        return amount.because(said if amount.known else f"{said}; {amount.basis}")
    if isinstance(known.model, LocalModel):
        return Amount(0.0, basis="runs on this machine")
    if own is not None and len(own.cost) and not bool((own.cost != own.cost).any()):
        return _mean(
            own.cost, f"as reported by its replies, {_measured(own)}", level, n_all
        )
    return Amount(
        None, basis=f"no price is known for {known.model.name}: give --price IN/OUT"
    )


def _seconds(known: ModelBasis, requests: Amount) -> Amount:
    """How long that many requests take, from the pace of a run of this very model."""
    pace = known.pace
    own = known.own
    if pace is None or own is None:
        return Amount(
            None,
            basis=(
                f"{known.model.name} has not been timed yet: use --pilot, or --from RUN"
            ),
        )
    if not pace.requests or pace.seconds <= 0:
        return Amount(
            None,
            basis="every answer of the run came from the store, so nothing was timed",
        )
    if requests.value is None:
        return Amount(None, basis=requests.basis)
    n = requests.value * (1 + known.judges)
    alike = pace.seconds * n / pace.requests
    others = ", those to other roles included," if known.judges else ""
    basis = f"{counted(pace.requests, 'request')}{others} took {duration(pace.seconds)}"
    if isinstance(known.model, RemoteModel):
        pacing = known.model.pacing
        latency = 0.0 if math.isnan(pace.latency) else pace.latency
        low = min(alike, max(latency, n * latency / pacing.max_concurrency))
        filled = pace.requests >= 4 * pacing.start_concurrency
        value = (
            alike
            if filled
            else min(alike, max(latency, n * latency / pacing.start_concurrency))
        )
        said = f"{basis}, one {duration(latency)}; between full concurrency and none"
        return Amount(value, low, alike, said)
    return Amount(alike, min(alike, pace.seconds), alike, f"{basis}, loading included")


def _measured(source: Measured) -> str:
    return (
        f"measured on {counted(len(source.requests), 'answer')} of {source.run.label}"
    )


# -- prompts ---------------------------------------------------------------------------


MOST_READ = 200
"""Items whose prompts are read; a larger task is judged by that many of its items, drawn by the
seed.
"""

BYTES_PER_TOKEN = 4.0, 2.5, 6.0
"""A guess for a tokenizer that is not shown, with its pessimistic and optimistic bounds: bytes of
UTF-8 a token.
"""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The requests of some items of a task, an entry per item: how many, tokens in, and the most
    tokens out.

    most_out: None where a request leaves the limit to the model. exact: counted by the model's own
    tokenizer. every: all items were read. counted_by: the tokenizer, in words. stored: how many of
    the requests the store answers, None where not all were made (a part of the items, the first of
    several draws).
    """

    requests: tuple[int, ...]
    input_tokens: tuple[float, ...]
    most_out: tuple[int, ...] | None
    exact: bool
    every: bool
    counted_by: str
    stored: int | None


def read_prompts(
    task: Task, model: Model, seed: int, known: Callable[[bytes], bool]
) -> Prompts:
    """Read up to MOST_READ items of a task as `model` would get them.

    Nothing is asked, and no weights are loaded.

    known: whether the store has the answer to the request of that key.
    """
    total = len(task.samples)
    every = total <= MOST_READ
    places = (
        range(total) if every else random.Random(seed).sample(range(total), MOST_READ)
    )
    reader, counted_by = _reader(model)
    requests = []
    tokens = []
    most = []
    limited = True
    stored = 0
    # What cannot be asked will fail in the run too, and `tasks check` says why.
    for asked, _ in run_blocking(
        lambda: all_requests(task, [task.samples[place] for place in places])
    ):
        try:
            if not asked:
                raise TaskError("no request is sent")
            into = sum(_tokens(request, reader) for request in asked)
        except EvalwrightError:
            continue
        room = [_room(request, model) for request in asked]
        limited = limited and None not in room
        stored += sum(
            known(request_key(model.fingerprint, request.payload()))
            for request in asked
        )
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
        stored if every and task.draws == 1 else None,
    )


def _reader(model: Model) -> tuple[Reader | None, str]:
    reader = None
    why = ""
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
        context, continuation = encode_pair(
            reader.encoder, rules, text, request.continuation
        )
        return len(context) + len(continuation)
    return len(encode_text(reader.encoder, reader.rules, _text(request)))


def _text(request: Request) -> str:
    if isinstance(request, Generate):
        return _prompt(request.prompt)
    if isinstance(request, LogLikelihood):
        return _prompt(request.context) + request.continuation
    return (
        request.text
        if isinstance(request, RollingLogLikelihood)
        else str(request.payload())
    )


def _prompt(prompt: Prompt) -> str:
    return (
        prompt
        if isinstance(prompt, str)
        else "\n".join(f"{turn.role}\n{turn.text}" for turn in prompt)
    )


def _room(request: Request, model: Model) -> int | None:
    """The most tokens that the answer may have; None where only the model knows."""
    if not isinstance(request, Generate):
        return 0
    if request.max_tokens is None and isinstance(model, LocalModel):
        return DEFAULT_MAX_TOKENS
    return request.max_tokens
