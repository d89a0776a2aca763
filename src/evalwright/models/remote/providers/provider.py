"""A provider as its row in the table describes it, and as it is for one model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from evalwright.models.remote.wire.format import merge_bodies


@dataclass(frozen=True, slots=True)
class ModelRule:
    """Settings for the models of a provider whose full name matches the pattern `match`.

    Later rules take precedence. `refuses` replaces the row's; `takes` and `lacks` extend it.
    `examples` are names that match.
    """

    match: str = ".*"
    examples: tuple[str, ...] = ()
    wire: str | None = None
    tokens_field: str | None = None
    system_field: str | None = None
    refuses: tuple[str, ...] | None = None
    takes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    reasoning_fields: tuple[str, ...] | None = None
    stream: bool | None = None
    least_temperature: float | None = None
    most_stops: int | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    thinking: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider's row in the table.

    Attributes:
        base_url: `{name}` in it is filled from the argument `variables`, or from the environment
            variable that `variables` names.
        key: environment variables for the key, of which the first that is set counts; () if none is
            needed.
        wires: the wire formats, the default first.
        auth: one of `AUTHS`.
        model: how a model's name without a slash is sent ("accounts/fireworks/models/{model}").
        any_server: whether the name also stands for other servers, so the rules apply only at its
            own address.
        defaults: max_tokens, temperature and top_p for when neither the task nor the user sets
            them.
        thinking: by level, the fields to merge (`body`), to omit (`refuses`), and whether to
            `stream`. `budget` is the place of a number of tokens, `efforts` are words that are
            levels, and `effort` is their place in the body, or a table of places by wire format.
        url_variable: the environment variable for another base URL.
        stream: whether to stream answers unless the user says otherwise.
        least_temperature: sent instead of a lower temperature.
        most_stops: the number of stop strings to send; all of them are applied here.
        prefill: merged into the body if the prompt ends with the beginning of the answer.
        cost_field: the field with a reply's cost in US dollars ("usage.cost").
        system_field: the input for the system prompt of a model without messages, or "".
        takes, lacks: options and images that the interface has, or lacks, unlike its format.
        names_itself: whether replies name the deployed model, whatever name was requested.
        returns: what is sent back with an assistant's turn that calls tools: fields of the reply's
            message, such as "reasoning_content", or "<think>" for its reasoning in tags before the
            text.
        raw_arguments: whether the provider takes the malformed arguments of a call as the model
            wrote them. Most servers parse them for the model's template.
        scoring: how completions give log-likelihoods, one of `SCORING`.
        docs: the address of the API's documentation.
    """

    name: str
    base_url: str
    title: str = ""
    key: tuple[str, ...] = ()
    wires: tuple[str, ...] = ("openai-chat",)
    auth: str = "bearer"
    headers: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    url_variable: str = ""
    model: str = "{model}"
    any_server: bool = False
    tokens_field: str = "max_tokens"
    system_field: str = "system_prompt"
    refuses: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    stream: bool = False
    least_temperature: float | None = None
    most_stops: int | None = None
    prefill: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    thinking: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[ModelRule, ...] = ()
    batch: str = ""
    scoring: str = ""
    example: str = ""
    max_concurrency: int = 512
    names_itself: bool = False
    cost_field: str = ""
    returns: tuple[str, ...] = ()
    raw_arguments: bool = False
    docs: str = ""


def apply_rules(provider: Provider, model: str) -> Provider:
    """Return the row for one model, with the rules that match its name applied in order."""
    for rule in provider.models:
        if not re.fullmatch(rule.match, model, re.IGNORECASE):
            continue
        overrides = {
            name: override
            for name in (
                "tokens_field",
                "system_field",
                "refuses",
                "reasoning_fields",
                "stream",
                "least_temperature",
                "most_stops",
            )
            if (override := getattr(rule, name)) is not None
        }
        if rule.wire is not None:
            overrides["wires"] = (
                rule.wire,
                *(wire for wire in provider.wires if wire != rule.wire),
            )
        overrides |= {
            name: (*getattr(provider, name), *getattr(rule, name))
            for name in ("takes", "lacks")
        }
        for name in ("defaults", "extra_body", "thinking"):
            overrides[name] = merge_bodies(getattr(provider, name), getattr(rule, name))
        provider = replace(provider, **overrides)
    return provider


def is_at(provider: Provider, url: str) -> bool:
    """Return whether a URL leads to the provider's own host; variables in it match anything."""
    host_pieces = re.split(r"\{\w+\}", urlsplit(provider.base_url).hostname or "")
    return (
        re.fullmatch(
            ".+".join(map(re.escape, host_pieces)), urlsplit(url).hostname or ""
        )
        is not None
    )


def may_have_keys(provider: Provider, url: str) -> bool:
    """Return whether the provider's keys may be sent to a URL that the user named.

    A provider whose whole host is a variable has no hosts of its own, except Google.
    """
    if provider.auth == "google":
        return (urlsplit(url).hostname or "").endswith(".googleapis.com")
    return is_at(provider, url) or not urlsplit(provider.base_url).hostname
