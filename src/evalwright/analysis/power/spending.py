"""What asking takes: requests, tokens, money and time, each with bounds and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalwright.analysis.forecasts import Amount, Usage
from evalwright.analysis.power.prompts import BYTES_PER_TOKEN, Prompts
from evalwright.analysis.power.variances import ASSUMED
from evalwright.core.words import count, counted, duration
from evalwright.models.base import LocalModel, Model, RemoteModel
from evalwright.models.remote.prices import Price, warn_if_old
from evalwright.statistics import mean_interval

if TYPE_CHECKING:
    from evalwright.runs.measurements import Measured, Pace


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one model on one task before it is asked.

    own: a run of this very model; other: a run of another one, whose answers are of a like length. pace: of the own run.
    judges: requests to other roles for each of the model's own. price: None where none is known.
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


def usage_of(
    evidence: Evidence, n_answers: int, n_all: int, assumed: Mapping[str, float], level: float
) -> Usage:
    """What `n_answers` answers of one model to one task take, out of the `n_all` that the whole task would."""
    each_request = _requests(evidence, n_all, level)
    into, out = _input_tokens(evidence, n_all, level), _output_tokens(evidence, n_all, assumed, level)
    requests = each_request.times(n_answers)
    return Usage(
        requests,
        into.times(n_answers),
        out.times(n_answers),
        _money(evidence, into, out, n_all, level).times(n_answers),
        _seconds(evidence, requests),
        evidence.prompts.stored,
    )


def add_up(usages: Sequence[Usage]) -> Usage:
    """What several tasks of one model take together."""
    looked_up = [usage.stored for usage in usages if usage.stored is not None]
    return Usage(
        total([usage.requests for usage in usages]),
        total([usage.input_tokens for usage in usages]),
        total([usage.output_tokens for usage in usages]),
        total([usage.money for usage in usages]),
        total([usage.seconds for usage in usages]),
        sum(looked_up) if len(looked_up) == len(usages) else None,
    )


def total(amounts: Sequence[Amount]) -> Amount:
    """The sum. Bounds add up, which is wider than it must be; unknown where a part is unknown."""
    basis = "; ".join(dict.fromkeys(amount.basis for amount in amounts))
    if not all(amount.known for amount in amounts):
        return Amount(None, basis="; ".join(dict.fromkeys(a.basis for a in amounts if not a.known)))
    low = _sum([amount.value if amount.low is None else amount.low for amount in amounts])
    high = _sum([amount.value if amount.high is None else amount.high for amount in amounts])
    return Amount(
        _sum([amount.value for amount in amounts]),
        None if all(amount.low is None for amount in amounts) else low,
        None if all(amount.high is None for amount in amounts) else high,
        basis,
    )


def _sum(parts: Sequence[float | None]) -> float | None:
    """None where a part is not known."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def mean_amount(values: Any, basis: str, level: float, n_all: int | None = None) -> Amount:
    """The mean of one number per answer with its t limits; without limits where all are alike.

    n_all: the answers there are, of which these were drawn; the more of them are known, the closer the limits.
    """
    population = None if n_all is None else max(n_all, len(values))
    estimate = mean_interval(values, value_range=None, level=level, population=population)
    if math.isnan(estimate.low) or estimate.low == estimate.high:
        return Amount(estimate.value, basis=basis)
    return Amount(estimate.value, max(0.0, estimate.low), estimate.high, basis)


def _requests(evidence: Evidence, n_all: int, level: float) -> Amount:
    for source, population in ((evidence.own, n_all), (evidence.other, None)):
        if source is not None and len(source.requests):
            return mean_amount(source.requests, _measured(source), level, population)
    return _of_prompts(evidence.prompts, evidence.prompts.requests, "as the task asks", n_all, level)


def _input_tokens(evidence: Evidence, n_all: int, level: float) -> Amount:
    prompts, own = evidence.prompts, evidence.own
    if own is not None and own.counts_tokens:
        return mean_amount(own.input_tokens, _measured(own), level, n_all)
    amount = _of_prompts(prompts, prompts.input_tokens, prompts.counted_by, n_all, level)
    if prompts.exact or amount.value is None:
        return amount
    typical, few, many = BYTES_PER_TOKEN
    low, high = (amount.low or amount.value) * typical / many, (amount.high or amount.value) * typical / few
    return Amount(amount.value, low, high, amount.basis)


def _output_tokens(evidence: Evidence, n_all: int, assumed: Mapping[str, float], level: float) -> Amount:
    if "output_tokens" in assumed:
        return Amount(assumed["output_tokens"], basis=ASSUMED)
    for source, population in ((evidence.own, n_all), (evidence.other, None)):
        if source is not None and source.counts_tokens:
            whose = "" if source is evidence.own else ", another model"
            return mean_amount(source.output_tokens, _measured(source) + whose, level, population)
    most = evidence.prompts.most_out
    if most is None:
        return Amount(None, basis="the task leaves the length of an answer to the model")
    amount = _of_prompts(evidence.prompts, most, "the task's limit", n_all, level)
    if not amount.value:
        return amount.because("no text is generated, only likelihoods are computed")
    high = amount.value if amount.high is None else amount.high
    return Amount(None, 0.0, high, "not known before answers are seen; at most the task's limit")


def _of_prompts(prompts: Prompts, values: Sequence[float], basis: str, n_all: int, level: float) -> Amount:
    if not values:
        return Amount(None, basis="no prompt of the task could be read")
    if prompts.every:
        return Amount(sum(values) / len(values), basis=basis)
    return mean_amount(values, f"{basis}, on {count(len(values))} items", level, n_all)


def _money(evidence: Evidence, into: Amount, out: Amount, n_all: int, level: float) -> Amount:
    """US dollars for one answer: by the price given or known, else as the replies of a run named it.

    What a provider takes less for tokens in its cache, or more for long prompts, is not forecast.
    """
    price, own = evidence.price, evidence.own
    if price is not None:
        parts = [into.times(price.input / 1e6), out.times(price.output / 1e6)]
        parts.append(Amount(price.request))
        amount = total(parts if price.output else [parts[0], parts[2]])
        said = f"${price.input:g} in and ${price.output:g} out for a million tokens"
        if price.as_of:
            said += f", prices of {price.as_of}"
        return amount.because(said if amount.known else f"{said}; {amount.basis}")
    if isinstance(evidence.model, LocalModel):
        return Amount(0.0, basis="runs on this machine")
    if own is not None and len(own.cost) and not bool((own.cost != own.cost).any()):
        return mean_amount(own.cost, f"as reported by its replies, {_measured(own)}", level, n_all)
    return Amount(None, basis=f"no price is known for {evidence.model.name}: give --price IN/OUT")


def _seconds(evidence: Evidence, requests: Amount) -> Amount:
    """How long that many requests take, from the pace of a run of this very model."""
    pace, own = evidence.pace, evidence.own
    if pace is None or own is None:
        return Amount(
            None, basis=f"nothing of {evidence.model.name} was timed: --pilot or --from a run of it"
        )
    if not pace.asked or pace.seconds <= 0:
        return Amount(None, basis="every answer of the run came from the store, so nothing was timed")
    if requests.value is None:
        return Amount(None, basis=requests.basis)
    n = requests.value * (1 + evidence.judges)
    alike = pace.seconds * n / pace.asked
    basis = f"{counted(pace.asked, 'request')} took {duration(pace.seconds)}"
    if isinstance(evidence.model, RemoteModel):
        pacing = evidence.model.pacing
        latency = 0.0 if math.isnan(pace.latency) else pace.latency
        low = min(alike, max(latency, n * latency / pacing.max_concurrency))
        filled = pace.asked >= 4 * pacing.start_concurrency
        value = alike if filled else min(alike, max(latency, n * latency / pacing.start_concurrency))
        said = f"{basis}, one {duration(latency)}; between full concurrency and none"
        return Amount(value, low, alike, said)
    return Amount(alike, min(alike, pace.seconds), alike, f"{basis}, loading included")


def _measured(source: Measured) -> str:
    return f"measured on {counted(len(source.requests), 'answer')} of {source.run.label}"
