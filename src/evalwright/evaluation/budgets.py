"""What a person writes about money, as limits: `--budget "5 USD"`, `"2M tokens"`, `--price
"gpt-4o-mini=0.15/0.60"`.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.engine.budget import Budget, Limits
from evalwright.engine.shared_budget import SharedBudget
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.models.base import LocalModel, Model, RemoteModel
from evalwright.models.remote.prices import Price, warn_if_old

_EXAMPLES = (
    "'5 USD', '2M tokens', '1000 requests', or several of them: '5 USD, 2M tokens'"
)
_PART = re.compile(
    r"^(?P<sign>\$)?\s*(?P<number>\d[\d,_]*(?:\.\d*)?|\.\d+)\s*(?P<scale>[kKMGB](?![a-z]))?\s*(?P<unit>[^\W\d]*)$"
)
_SCALES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}
_UNITS = {
    **dict.fromkeys(("usd", "dollar", "dollars"), "dollars"),
    **dict.fromkeys(("token", "tokens"), "tokens"),
    **dict.fromkeys(("request", "requests"), "requests"),
}
_PRICE = re.compile(
    r"^(?:(?P<name>.*)=)?\s*\$?(?P<into>[\d.]+)\s*/\s*\$?(?P<out>[\d.]+)\s*(?:USD)?\s*(?:per\s+(?:1M|million)(?:\s+tokens)?)?$",
    re.IGNORECASE,
)


def parse_budget(texts: Sequence[str]) -> Limits:
    """The limits that some texts name together.

    Raises ConfigurationError where one cannot be read, or is named twice.
    """
    found: dict[str, float] = {}
    for text in texts:
        for part in re.split(r"\s*(?:,\s+|;|\band\b|\+)\s*", text.strip()):
            name, value = _limit(part, text)
            if name in found:
                raise ConfigurationError(
                    f"The budget names {name} twice. Give one limit of each kind."
                )
            found[name] = value
    requests = found.get("requests")
    tokens = found.get("tokens")
    return Limits(
        None if requests is None else int(requests),
        None if tokens is None else int(tokens),
        found.get("dollars"),
    )


def _limit(part: str, text: str) -> tuple[str, float]:
    match = _PART.match(part)
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
        said = f"has the unit {match['unit']!r}" if match["unit"] else "has no unit"
        raise ConfigurationError(
            f"The budget {text!r} {said}; known are USD, tokens and requests. It may be"
            f" {_EXAMPLES}."
        )
    value = float(re.sub("[,_]", "", match["number"])) * _SCALES[match["scale"] or ""]
    least = 0.0 if unit == "dollars" else 1.0
    if not math.isfinite(value) or value < least or value == 0:
        raise ConfigurationError(
            f"The budget {text!r} must be above 0. It may be {_EXAMPLES}."
        )
    return unit, value


def parse_prices(texts: Sequence[str]) -> dict[str, Price]:
    """Prices by model name, "" for every model that has none of its own.

    Raises ConfigurationError.
    """
    out: dict[str, Price] = {}
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
        if name in out:
            raise ConfigurationError(
                f"Two prices are given for {name or 'every model'!r}. Give one."
            )
        out[name] = price
    return out


def make_budget(
    configuration: Configuration,
    models: Sequence[tuple[ModelSpec, Model]],
    roles: Mapping[str, Model],
    shards: Sequence[Mapping[str, Any]] = (),
) -> Budget | None:
    """The budget of an evaluation, None without one.

    A price given for a model is also what its answers cost in the record.

    shards: which part of its run each model's is (`Plan.shard`), where the budget is for all parts
    together.

    Raises ConfigurationError where it is in money and a model that costs something has no price,
    and UnknownName where a price names no model.
    """
    prices = parse_prices(configuration.price)
    asked = [(spec, model) for spec, model in models]
    asked += [
        (configuration.roles.get(role, ModelSpec(role)), model)
        for role, model in roles.items()
    ]
    known = {name for spec, _ in asked for name in _names(spec)}
    for name in prices:
        if name and name not in known:
            raise UnknownName(
                "model in a price",
                name,
                known,
                "A price may be for one of the models of this command.",
            )
    used: set[str] = set()
    for spec, model in asked:
        others = None if isinstance(model, LocalModel) else prices.get("")
        given = next((prices[name] for name in _names(spec) if name in prices), others)
        if isinstance(model, RemoteModel) or configuration.budget:
            named = [name for name in _names(spec) if name in prices]
            used.update(named[:1] or ([] if others is None else [""]))
        if given is not None:
            model.price = given
        if model.price is not None:
            warn_if_old(model.price)
    for name in prices.keys() - used:
        raise ConfigurationError(
            f"The price for {name or 'every model'!r} has no effect: "
            + (
                "it has a price under another name"
                if name and configuration.budget
                else "local models cost nothing"
            )
            + ", or every model has a price of its own. Leave it out."
        )
    if not configuration.budget:
        return None
    limits = parse_budget(configuration.budget)
    for spec, model in asked:
        if model.price is not None or (
            isinstance(model, RemoteModel) and model.names_cost
        ):
            continue
        if limits.dollars is not None and not isinstance(model, LocalModel):
            raise ConfigurationError(
                "The budget is in dollars, but the price of"
                f" '{spec.label or spec.model}' is not known. Give it, in US dollars"
                " per million tokens read and written, with `evalwright run --price"
                " 'IN/OUT'`, as `price: IN/OUT` in the suite file, or in a file of"
                " providers (docs/providers.md), or limit tokens or requests."
            )
    if shards:
        whole = sorted(str(shard["identity"]) for shard in shards)
        name = hashlib.sha256(
            "\n".join([str(shards[0]["name"]), *whole]).encode()
        ).hexdigest()
        return SharedBudget(limits, name, int(shards[0]["of"]))
    return Budget(limits)


def _names(spec: ModelSpec) -> list[str]:
    """What a price may call a model."""
    return [
        name for name in (spec.label, spec.model, spec.model.partition("/")[2]) if name
    ]
