"""Parses spending limits and prices: `--budget "5 USD"`, `"2M tokens"`, `--price "M=0.15/0.60"`."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from evalwright.core.errors import ConfigurationError, StoreError, UnknownName
from evalwright.engine.budget import Budget, Limits
from evalwright.engine.shared_budget import Allotments, SharedBudget
from evalwright.evaluation.configuration import ModelSpec
from evalwright.models.model_interface import LocalModel, Model, RemoteModel
from evalwright.models.remote.prices import Price, warn_if_old

_EXAMPLES = (
    "'5 USD', '2M tokens', '1000 requests', or several of them: '5 USD, 2M tokens'"
)
_PART = re.compile(
    r"^(?P<sign>\$)?\s*(?P<number>\d[\d,_]*(?:\.\d*)?|\.\d+)"
    r"\s*(?P<scale>[kKMGB](?![a-z]))?\s*(?P<unit>[^\W\d]*)$"
)
_SCALES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}
_UNITS = {
    **dict.fromkeys(("usd", "dollar", "dollars"), "dollars"),
    **dict.fromkeys(("token", "tokens"), "tokens"),
    **dict.fromkeys(("request", "requests"), "requests"),
}
_PRICE = re.compile(
    r"^(?:(?P<name>.*)=)?\s*\$?(?P<into>[\d.]+)\s*/\s*\$?(?P<out>[\d.]+)\s*(?:USD)?"
    r"\s*(?:per\s+(?:1M|million)(?:\s+tokens)?)?$",
    re.IGNORECASE,
)


def parse_budget(texts: Sequence[str]) -> Limits:
    """Parse the limits that several texts set together.

    Raises:
        ConfigurationError: a text cannot be read, or two set the same limit.
    """
    amounts: dict[str, float] = {}
    for text in texts:
        for limit_text in re.split(r"\s*(?:,\s+|;|\band\b|\+)\s*", text.strip()):
            name, amount = _limit(limit_text, text)
            if name in amounts:
                raise ConfigurationError(
                    f"The budget names {name} twice. Give one limit of each kind."
                )
            amounts[name] = amount
    requests = amounts.get("requests")
    tokens = amounts.get("tokens")
    return Limits(
        None if requests is None else int(requests),
        None if tokens is None else int(tokens),
        amounts.get("dollars"),
    )


def _limit(limit_text: str, text: str) -> tuple[str, float]:
    match = _PART.match(limit_text)
    if match is None:
        raise ConfigurationError(
            f"The budget {text!r} cannot be read. It may be {_EXAMPLES}."
        )
    unit = (
        "dollars"
        if match["sign"] and not match["unit"]
        else _UNITS.get(match["unit"].lower(), "")
    )
    if not unit:
        problem = f"has the unit {match['unit']!r}" if match["unit"] else "has no unit"
        raise ConfigurationError(
            f"The budget {text!r} {problem}; known are USD, tokens and requests. It may be"
            f" {_EXAMPLES}."
        )
    amount = float(re.sub("[,_]", "", match["number"])) * _SCALES[match["scale"] or ""]
    least = 0.0 if unit == "dollars" else 1.0
    if not math.isfinite(amount) or amount < least or amount == 0:
        raise ConfigurationError(
            f"The budget {text!r} must be above 0. It may be {_EXAMPLES}."
        )
    return unit, amount


def parse_prices(texts: Sequence[str]) -> dict[str, Price]:
    """Parse prices by model name, "" for every model without one.

    Raises:
        ConfigurationError: a text cannot be read.
    """
    prices: dict[str, Price] = {}
    for text in texts:
        match = _PRICE.match(text.strip())
        try:
            price = Price(float(match["into"]), float(match["out"])) if match else None
        except ValueError:
            price = None
        if match is None or price is None:
            raise ConfigurationError(
                f"The price {text!r} cannot be read. Write US dollars per million"
                " tokens read and written, as in '0.15/0.60', or for one model"
                " 'openai/gpt-4o-mini=0.15/0.60'."
            )
        name = (match["name"] or "").strip()
        if name in prices:
            raise ConfigurationError(
                f"Two prices are given for {name or 'every model'!r}. Give one."
            )
        prices[name] = price
    return prices


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """What may be spent.

    Attributes:
        limits: the limits.
        shared_name: name of a budget that several processes share; "" for one of this process
            alone.
        n_processes: number of processes that share it; 0 for workers, which come and go.
    """

    limits: Limits
    shared_name: str = ""
    n_processes: int = 1


@asynccontextmanager
async def open_budget(
    terms: BudgetTerms | None, store: Allotments
) -> AsyncIterator[Budget | None]:
    """Open the budget while requests are sent.

    `store` keeps what several processes have taken of it.
    """
    if terms is None or not terms.shared_name:
        yield None if terms is None else Budget(terms.limits)
        return
    budget = SharedBudget(terms.limits, terms.shared_name, terms.n_processes)
    budget.open(store)
    try:
        yield budget
    finally:
        with suppress(
            StoreError
        ):  # what this process had reserved then counts as spent
            await budget.close()


def price_models(
    texts: Sequence[str],
    models: Sequence[tuple[ModelSpec, Model]],
    *,
    has_budget: bool,
) -> None:
    """Give each model the price that the user names, which its recorded costs also use.

    Args:
        texts: the prices, each with the name of its model or for all that have none.
        models: all models that get requests, those in roles included.
        has_budget: whether there is a budget, to which the prices of local models count.

    Raises:
        UnknownName: a price names no model.
        ConfigurationError: a price cannot be read, or has no effect.
    """
    prices = parse_prices(texts)
    model_names = {name for spec, _ in models for name in _names(spec)}
    for name in prices:
        if name and name not in model_names:
            raise UnknownName(
                "model in a price",
                name,
                model_names,
                "A price may be for one of the models of this command.",
            )
    used: set[str] = set()
    for spec, model in models:
        general = None if isinstance(model, LocalModel) else prices.get("")
        named = [name for name in _names(spec) if name in prices]
        price = prices[named[0]] if named else general
        if isinstance(model, RemoteModel) or has_budget:
            used.update(named[:1] or ([] if general is None else [""]))
        if price is not None:
            model.price = price
        if model.price is not None:
            warn_if_old(model.price)
    for name in prices.keys() - used:
        raise ConfigurationError(
            f"The price for {name or 'every model'!r} has no effect: "
            + (
                "it has a price under another name"
                if name and has_budget
                else "local models cost nothing"
            )
            + ", or every model has a price of its own. Leave it out."
        )


def read_budget(
    texts: Sequence[str],
    models: Sequence[tuple[ModelSpec, Model]],
    shards: Sequence[Mapping[str, Any]] = (),
    of_workers: Sequence[str] = (),
) -> BudgetTerms | None:
    """Return what may be spent; None without a budget.

    Args:
        texts: the limits.
        models: all models that get requests, with their prices.
        shards: for each model, which part of its run this is, if the budget is for all parts
            together.
        of_workers: the identities of the runs that workers make together, if they do.

    Raises:
        ConfigurationError: the budget is in money, and a model that costs something has no price.
    """
    if not texts:
        return None
    limits = parse_budget(texts)
    for spec, model in models:
        if model.price is not None or (
            isinstance(model, RemoteModel) and model.names_cost
        ):
            continue
        if limits.dollars is not None and not isinstance(model, LocalModel):
            raise ConfigurationError(
                "The budget is in dollars, but the price of"
                f" '{spec.label or spec.model}' is not known. Give it, in US dollars"
                " per million tokens read and written, with `--price 'IN/OUT'`,"
                " as `price: IN/OUT` in the suite file, or in a file of"
                " providers (docs/providers.md), or limit tokens or requests."
            )
    if of_workers:
        text = "\n".join(["workers", *sorted(of_workers)])
        return BudgetTerms(limits, hashlib.sha256(text.encode()).hexdigest(), 0)
    if not shards:
        return BudgetTerms(limits)
    identities = sorted(str(shard["identity"]) for shard in shards)
    text = "\n".join([str(shards[0]["name"]), *identities])
    name = hashlib.sha256(text.encode()).hexdigest()
    return BudgetTerms(limits, name, int(shards[0]["of"]))


def _names(spec: ModelSpec) -> list[str]:
    """Return the names that a price may use for a model."""
    return [
        name for name in (spec.label, spec.model, spec.model.partition("/")[2]) if name
    ]
