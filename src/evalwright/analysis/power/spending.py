"""Forecasts the cost of a run: requests, tokens, money and time, each with bounds and a basis.

Prompts are read without sending a request.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.power.forecasts import (
    Amount,
    JudgeForecast,
    ModelForecast,
)
from evalwright.analysis.power.settings import Aim
from evalwright.analysis.power.variances import ASSUMED
from evalwright.analysis.task_checks.material import collect_all_requests
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
from evalwright.models.local.tokens import (
    DEFAULT_MAX_TOKENS,
    Reader,
    encode_pair,
    encode_text,
)
from evalwright.models.model_interface import LocalModel, Model, RemoteModel
from evalwright.models.remote.prices import Price, warn_if_old
from evalwright.runs.measurements import Measured, Pace
from evalwright.statistics import mean_interval
from evalwright.strategies.limits import Limits
from evalwright.tasks.sandbox_keys import AGENTS

SPENT_FIELDS = ("requests", "input_tokens", "output_tokens", "money")
"""What the forecasts of models and of judges both have."""


@dataclass(frozen=True, slots=True)
class ModelBasis:
    """What is known of one model on one task before any request.

    Args:
        model: the model.
        prompts: the requests of some items.
        own_run: measurements of this very model.
        other_run: measurements of another model or prompt, whose answers have a similar length.
        pace: how fast the own run went.
        judges: requests to other roles per request to the model itself.
        price: None if unknown.
    """

    model: Model
    prompts: TaskPrompts
    own_run: Measured | None
    other_run: Measured | None
    pace: Pace | None
    judges: float
    price: Price | None


def find_price(model: Model) -> Price | None:
    """Find the model's price in the price table or the user's own file; None if neither has it."""
    price = model.price if isinstance(model, RemoteModel) else None
    if price is not None:
        warn_if_old(price)
    return price


def forecast_usage(
    basis: ModelBasis, n_answers: int, n_all: int, aim: Aim
) -> ModelForecast:
    """Forecast the cost of answers by one model to one task.

    Args:
        basis: what is known about the requests of this model and task.
        n_answers: number of answers to forecast.
        n_all: number of answers to the whole task.
        aim: the settings of the plan.
    """
    into = _forecast_input_tokens(basis, n_all, aim.level)
    output_tokens = _forecast_output_tokens(basis, n_all, aim)
    of_one = (
        _forecast_requests(basis, n_all, aim.level),
        into,
        output_tokens,
        _forecast_money(basis, into, output_tokens, n_all, aim.level),
    )
    requests, into, output_tokens, money = (
        amount.times(n_answers * basis.prompts.own_share) for amount in of_one
    )
    return ModelForecast(
        requests,
        into,
        output_tokens,
        money,
        _forecast_seconds(basis, requests),
        basis.prompts.stored,
    )


def sum_forecasts(usages: Sequence[ModelForecast]) -> ModelForecast:
    """Add up the forecasts of several tasks for one model."""
    sums = sum_by_field(usages, (*SPENT_FIELDS, "seconds"))
    looked_up = [usage.stored for usage in usages if usage.stored is not None]
    return ModelForecast(
        **sums, stored=sum(looked_up) if len(looked_up) == len(usages) else None
    )


def sum_by_field(
    forecasts: Sequence[ModelForecast | JudgeForecast], fields: Sequence[str]
) -> dict[str, Amount]:
    """Add up each of some fields over the forecasts of models, judges or both."""
    return {
        name: sum_amounts([getattr(forecast, name) for forecast in forecasts])
        for name in fields
    }


def sum_amounts(amounts: Sequence[Amount]) -> Amount:
    """Add up amounts; unknown if one is. Bounds add up too, which is wider than necessary."""
    unknown = [amount for amount in amounts if not amount.is_known]
    basis = "; ".join(dict.fromkeys(amount.basis for amount in unknown or amounts))
    if unknown:
        return Amount(None, basis=basis)
    return Amount(
        _sum_or_none([amount.value for amount in amounts]),
        (
            None
            if all(amount.low is None for amount in amounts)
            else _sum_or_none([amount.least for amount in amounts])
        ),
        (
            None
            if all(amount.high is None for amount in amounts)
            else _sum_or_none([amount.most for amount in amounts])
        ),
        basis,
    )


def _sum_or_none(numbers: Sequence[float | None]) -> float | None:
    """Add up numbers; None if one is unknown."""
    present = [number for number in numbers if number is not None]
    return sum(present) if len(present) == len(numbers) else None


def mean_amount(
    values: Any, basis: str, level: float, n_all: int | None = None
) -> Amount:
    """Average one number per answer, with t limits; without limits if all are equal.

    Args:
        values: the numbers.
        basis: where they come from, in words.
        level: confidence level.
        n_all: size of the population that the answers were drawn from, which narrows the limits.
    """
    estimate = mean_interval(values, value_range=None, level=level)
    # n of N items were drawn without replacement, so only the rest is unknown: the variance is
    # multiplied by 1 - n / N (Cochran 1977, chapter 2).
    factor = (
        1.0
        if n_all is None
        else math.sqrt(max(0.0, 1.0 - estimate.n / max(n_all, len(values), 1)))
    )
    low = estimate.value - factor * (estimate.value - estimate.low)
    high = estimate.value + factor * (estimate.high - estimate.value)
    if math.isnan(low) or low == high:
        return Amount(estimate.value, basis=basis)
    return Amount(estimate.value, max(0.0, low), high, basis)


def _forecast_requests(model_basis: ModelBasis, n_all: int, level: float) -> Amount:
    for source, population in (
        (model_basis.own_run, n_all),
        (model_basis.other_run, None),
    ):
        if source is not None and len(source.requests):
            return mean_amount(
                source.requests, _measured_basis(source), level, population
            )
    if model_basis.prompts.limits is not None:
        return _acting_amount(model_basis.prompts, "requests", "messages", 1.0)
    return _amount_from_prompts(
        model_basis.prompts,
        model_basis.prompts.requests,
        "as the task asks",
        n_all,
        level,
    )


def _forecast_input_tokens(model_basis: ModelBasis, n_all: int, level: float) -> Amount:
    prompts = model_basis.prompts
    own_run = model_basis.own_run
    if own_run is not None and own_run.counts_tokens:
        return mean_amount(own_run.input_tokens, _measured_basis(own_run), level, n_all)
    if prompts.limits is not None:
        return _acting_amount(prompts, "tokens", "tokens")
    amount = _amount_from_prompts(
        prompts, prompts.input_tokens, prompts.counted_by, n_all, level
    )
    if prompts.exact or amount.value is None:
        return amount
    typical, few, many = BYTES_PER_TOKEN
    low = (amount.least or 0.0) * typical / many
    high = (amount.most or 0.0) * typical / few
    return Amount(amount.value, low, high, amount.basis)


def _forecast_output_tokens(model_basis: ModelBasis, n_all: int, aim: Aim) -> Amount:
    level = aim.level
    if "output_tokens" in aim.assumed:
        return Amount(aim.assumed["output_tokens"], basis=ASSUMED)
    for source, population in (
        (model_basis.own_run, n_all),
        (model_basis.other_run, None),
    ):
        if source is not None and source.counts_tokens:
            whose = (
                "" if source is model_basis.own_run else _foreign_source(model_basis)
            )
            return mean_amount(
                source.output_tokens, _measured_basis(source) + whose, level, population
            )
    if model_basis.prompts.limits is not None:
        return _acting_amount(model_basis.prompts, "tokens", "tokens")
    most = model_basis.prompts.most_out
    if most is None:
        return Amount(
            None, basis="the task leaves the length of an answer to the model"
        )
    amount = _amount_from_prompts(
        model_basis.prompts, most, "the task's limit", n_all, level
    )
    if not amount.value:
        return amount.because("no text is generated, only likelihoods are computed")
    return Amount(
        None,
        0.0,
        amount.most,
        "not known before answers are seen; at most the task's limit",
    )


def _foreign_source(model_basis: ModelBasis) -> str:
    """How the measurements of another run differ from what is planned, for a basis."""
    other_run = model_basis.other_run
    same_model = other_run is not None and other_run.run.model == model_basis.model.name
    return ", another prompt" if same_model else ", another model"


def _amount_from_prompts(
    prompts: TaskPrompts, values: Sequence[float], basis: str, n_all: int, level: float
) -> Amount:
    if not values:
        return Amount(None, basis="no prompt of the task could be read")
    if prompts.every:
        return Amount(sum(values) / len(values), basis=basis)
    return mean_amount(values, f"{basis}, on {count(len(values))} items", level, n_all)


def _forecast_money(
    model_basis: ModelBasis,
    input_tokens: Amount,
    output_tokens: Amount,
    n_all: int,
    level: float,
) -> Amount:
    """Forecast US dollars for one answer.

    They come from its price, or from the costs in the replies of an earlier run. Discounts for
    cached tokens and surcharges for long prompts are not included.
    """
    price = model_basis.price
    own_run = model_basis.own_run
    if price is not None:
        costs = [
            input_tokens.times(price.input / 1e6),
            output_tokens.times(price.output / 1e6),
        ]
        costs.append(Amount(price.request))
        amount = sum_amounts(costs if price.output else [costs[0], costs[2]])
        limits = model_basis.prompts.limits
        if limits is not None and limits.get("dollars") and not amount.is_known:
            return _acting_amount(model_basis.prompts, "US dollars", "dollars")
        price_text = (
            f"${price.input:g} in and ${price.output:g} out for a million tokens"
        )
        if price.as_of:
            price_text += f", prices of {price.as_of}"
        return amount.because(
            price_text if amount.is_known else f"{price_text}; {amount.basis}"
        )
    if isinstance(model_basis.model, LocalModel):
        return Amount(0.0, basis="runs on this machine")
    if (
        own_run is not None
        and len(own_run.cost)
        and not bool((own_run.cost != own_run.cost).any())
    ):
        return mean_amount(
            own_run.cost,
            f"as reported by its replies, {_measured_basis(own_run)}",
            level,
            n_all,
        )
    return Amount(
        None,
        basis=f"no price is known for {model_basis.model.name}: give --price IN/OUT",
    )


def _forecast_seconds(model_basis: ModelBasis, requests: Amount) -> Amount:
    """Forecast how long the requests take, from the pace of an earlier run of this very model."""
    pace = model_basis.pace
    own_run = model_basis.own_run
    if pace is None or own_run is None:
        return Amount(
            None,
            basis=(
                f"{model_basis.model.name} has not been timed yet: use --pilot, or --from RUN"
            ),
        )
    if not pace.requests or pace.seconds <= 0:
        return Amount(
            None,
            basis="every answer of the run came from the store, so nothing was timed",
        )
    if requests.value is None:
        return Amount(None, basis=requests.basis)
    n = requests.value * (1 + model_basis.judges)
    alike = pace.seconds * n / pace.requests
    others = ", those to other roles included," if model_basis.judges else ""
    basis = f"{counted(pace.requests, 'request')}{others} took {duration(pace.seconds)}"
    if isinstance(model_basis.model, RemoteModel):
        pacing = model_basis.model.pacing
        latency = 0.0 if math.isnan(pace.latency) else pace.latency
        low = min(alike, max(latency, n * latency / pacing.max_concurrency))
        filled = pace.requests >= 4 * pacing.start_concurrency
        expected = (
            alike
            if filled
            else min(alike, max(latency, n * latency / pacing.start_concurrency))
        )
        timing_basis = (
            f"{basis}, one {duration(latency)}; between full concurrency and none"
        )
        return Amount(expected, low, alike, timing_basis)
    return Amount(alike, min(alike, pace.seconds), alike, f"{basis}, loading included")


def _measured_basis(source: Measured) -> str:
    return (
        f"measured on {counted(len(source.requests), 'answer')} of {source.run.label}"
    )


# -- prompts ---------------------------------------------------------------------------


MOST_READ = 200
"""Most items whose prompts are read.

For a larger task, this many items are drawn at random by the seed.
"""

BYTES_PER_TOKEN = 4.0, 2.5, 6.0
"""UTF-8 bytes per token where the tokenizer is not available: a guess, low and high bound."""


@dataclass(frozen=True, slots=True)
class TaskPrompts:
    """The requests of some items of a task, with one number per item.

    Args:
        requests: number of requests.
        input_tokens: number of tokens in them.
        most_out: the most tokens an answer may have; None if a request leaves it to the model.
        exact: whether tokens were counted by the model's own tokenizer.
        every: whether all items were read.
        counted_by: the tokenizer, in words.
        stored: how many requests the store can answer; None unless all requests were built.
        own_share: the share of these requests that are sent for this prompt: not those that are
            equal to an earlier one of the same model.
        limits: how long the model may act on an item; None where it does not act. Only the first
            request of each item is then known.
    """

    requests: tuple[int, ...]
    input_tokens: tuple[float, ...]
    most_out: tuple[int, ...] | None
    exact: bool
    every: bool
    counted_by: str
    stored: int | None
    own_share: float = 1.0
    limits: Mapping[str, float | None] | None = None


def read_prompts(
    task: Task,
    model: Model,
    seed: int,
    is_stored: Callable[[bytes], bool],
    sent_before: set[bytes] | None,
) -> TaskPrompts:
    """Read up to MOST_READ items of a task as a model would get them.

    No request is sent, and no weights are loaded.

    Args:
        task: the task.
        model: the model.
        seed: seeds the draw of items.
        is_stored: tells whether the store has the answer to a request, by its key.
        sent_before: keys of the requests of the prompts before this one, to which its own are
            added; None for a single prompt, whose equal requests are not looked for.
    """
    total = len(task.samples)
    every = total <= MOST_READ
    places = (
        range(total) if every else random.Random(seed).sample(range(total), MOST_READ)
    )
    reader, counted_by = _find_reader(model)
    requests = []
    tokens = []
    most = []
    limited = True
    stored = 0
    n_repeated = 0
    known_keys = set(sent_before or ())
    own_keys: set[bytes] = set()
    # Items whose requests cannot be built will fail in the run too; `tasks check` says why.
    for sent, _ in run_blocking(
        lambda: collect_all_requests(task, [task.samples[index] for index in places])
    ):
        try:
            if not sent:
                raise TaskError("no request is sent")
            into = sum(_count_tokens(request, reader) for request in sent)
        except EvalwrightError:
            continue
        room = [_most_output_tokens(request, model) for request in sent]
        limited = limited and None not in room
        for request in sent:
            key = request_key(model.fingerprint, request.payload())
            if key in known_keys:
                n_repeated += 1
                continue
            stored += is_stored(key)
            own_keys.add(key)
            if every and sent_before is not None:
                known_keys.add(key)
        requests.append(len(sent))
        tokens.append(into)
        most.append(sum(limit or 0 for limit in room))
    if sent_before is not None:
        sent_before |= own_keys
    return TaskPrompts(
        tuple(requests),
        tuple(tokens),
        tuple(most) if limited else None,
        reader is not None,
        every,
        counted_by,
        stored if every and task.draws == 1 else None,
        (sum(requests) - n_repeated) / sum(requests) if requests else 1.0,
        _acting_limits(task),
    )


def _acting_limits(task: Task) -> Mapping[str, float | None] | None:
    """Return how long the model may act on a sample; None if the task's models do not act."""
    strategy = task.definition.get("strategy")
    name = strategy.get("name") if isinstance(strategy, Mapping) else ""
    if name not in AGENTS:
        return None
    limits: Any = task.definition.get("limits")
    if limits is None:
        limits = {"messages": Limits().messages}
    return dict(limits)


def _acting_amount(
    prompts: TaskPrompts, unit: str, limit: str, least: float = 0.0
) -> Amount:
    """Return an amount of which only the limit of the model's acting is known."""
    most = (prompts.limits or {}).get(limit)
    if most is None:
        return Amount(None, basis="the model acts until it is done")
    return Amount(
        None,
        least,
        float(most),
        f"the model acts until it is done: at most {most:,g} {unit} for an item"
        f" (`limits.{limit}`)",
    )


def _find_reader(model: Model) -> tuple[Reader | None, str]:
    reader = None
    why = ""
    try:
        reader = model.reader()
    except (MissingExtra, ImportError, OSError) as error:
        why = f" ({error})"
    guessed = f"estimated at {BYTES_PER_TOKEN[0]:g} characters a token{why}"
    return reader, guessed if reader is None else "counted by its tokenizer"


def _count_tokens(request: Request, reader: Reader | None) -> float:
    if reader is None:
        return (
            len(_request_text(request).encode("utf-8", "surrogatepass"))
            / BYTES_PER_TOKEN[0]
        )
    if isinstance(request, Generate):
        text, rules = reader.render(request.prompt)
        return len(encode_text(reader.encoder, rules, text))
    if isinstance(request, LogLikelihood):
        text, rules = reader.render(request.context)
        context, continuation = encode_pair(
            reader.encoder, rules, text, request.continuation
        )
        return len(context) + len(continuation)
    return len(encode_text(reader.encoder, reader.rules, _request_text(request)))


def _request_text(request: Request) -> str:
    if isinstance(request, Generate):
        return _prompt_text(request.prompt)
    if isinstance(request, LogLikelihood):
        return _prompt_text(request.context) + request.continuation
    return (
        request.text
        if isinstance(request, RollingLogLikelihood)
        else str(request.payload())
    )


def _prompt_text(prompt: Prompt) -> str:
    return (
        prompt
        if isinstance(prompt, str)
        else "\n".join(f"{turn.role}\n{turn.text}" for turn in prompt)
    )


def _most_output_tokens(request: Request, model: Model) -> int | None:
    """The most tokens that the answer may have; None if only the model knows."""
    if not isinstance(request, Generate):
        return 0
    if isinstance(model, RemoteModel):  # its own max_tokens overrides the task's
        return model.most_tokens(request)
    if request.max_tokens is None and isinstance(model, LocalModel):
        return DEFAULT_MAX_TOKENS
    return request.max_tokens
