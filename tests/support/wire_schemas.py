"""What each provider documents of a request's body, strictly: JSON schemas
(`wire_schemas.json`), and rules between fields.

`refusal(format, body, model)` says what the provider would refuse a body for. The conformance suite
checks with it whatever the wire formats build, and the strict server whatever comes over the wire.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from support.block_tools import (
    as_anthropic,
    refused_by_amazon,
    refused_by_anthropic,
    refused_by_google,
)
from support.text_tools import (
    refused_by_mistral,
    refused_in_chat,
    refused_in_responses,
    with_tools,
)

_READ: dict[str, dict[str, Any]] = with_tools(
    json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
)
_CHAT = _READ["openai-chat"]
_MESSAGES = _READ["anthropic"]
SCHEMAS: Mapping[str, dict[str, Any]] = {
    **_READ,
    "azure-inference": _CHAT,
    "azure-openai": {**_CHAT, "required": ["messages"]},
    "huggingface": _CHAT,
    "vertex": _READ["gemini"],
    "vertex-anthropic": {
        **_MESSAGES,
        "properties": {
            **_MESSAGES["properties"],
            "anthropic_version": {"const": "vertex-2023-10-16"},
        },
        "required": ["anthropic_version", "max_tokens", "messages"],
    },
}
_SERVED_BY_MANY = (
    "azure-inference",
    "azure-openai",
    "huggingface",
    "openai-chat",
    "openai-completions",
)
"""Formats of many servers, each with fields of its own."""
_VALIDATORS = {name: Draft202012Validator(schema) for name, schema in SCHEMAS.items()}


def fault_in(name: str, body: Any) -> tuple[str, str] | None:
    """(field, words) of what does not fit the schema; None where all fits."""
    if _VALIDATORS[name].is_valid(body):
        return None
    wrong = best_match(_VALIDATORS[name].iter_errors(body))
    json_path = ".".join(map(str, wrong.absolute_path))
    if wrong.validator == "additionalProperties":
        unknown = next(
            field for field in wrong.instance if field not in wrong.schema["properties"]
        )
        return (json_path or unknown).partition(".")[
            0
        ], f"Unrecognized request argument supplied: {unknown}"
    if wrong.validator == "required":
        missing = next(
            field for field in wrong.validator_value if field not in wrong.instance
        )
        return (json_path or missing).partition(".")[
            0
        ], f"Missing required parameter: '{missing}'."
    return json_path.partition(".")[0], f"{json_path or 'body'}: {wrong.message}"


class InvalidRequest(Exception):
    """A 400: `body` is the error as OpenAI words it."""

    def __init__(
        self, message: str, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.body = error_body(message, "invalid_request_error", param, code)


def error_body(
    message: str, kind: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """OpenAI's error shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def validate(
    interface: str, body: Any, extra: frozenset[str] = frozenset()
) -> Mapping[str, Any]:
    """`body`, if it fits the documented schema; raises InvalidRequest. extra: undocumented
    fields that this server takes.
    """
    if not isinstance(body, dict):
        raise InvalidRequest(
            "We could not parse the JSON body of your request: expected an object."
        )
    documented = {name: value for name, value in body.items() if name not in extra}
    if wrong := fault_in(f"openai-{interface}", documented):
        raise InvalidRequest(wrong[1], wrong[0] or None)
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise InvalidRequest(
            "Set either max_tokens or max_completion_tokens, not both.", "max_tokens"
        )
    if body.get("stream_options") is not None and not body.get("stream"):
        raise InvalidRequest(
            "'stream_options' is only allowed when 'stream' is enabled.",
            "stream_options",
        )
    if interface == "chat" and (words := refused_in_chat(body)):
        raise InvalidRequest(words, "messages")
    return body


def refusal(
    name: str, body: Any, model: str = "", extra: frozenset[str] = frozenset()
) -> str | None:
    """What a provider of this format would refuse the body for; None where it fits. extra:
    fields that pass besides.
    """
    if name == "bedrock":
        return _by_botocore(body, model) or _bedrock(body, model)
    passing = extra if name in _SERVED_BY_MANY else ()
    wrong = fault_in(
        name, {field: value for field, value in body.items() if field not in passing}
    )
    if wrong is not None:
        return wrong[1]
    rule = _RULES.get(name)
    return rule(body, body.get("model", model)) if rule else None


@cache
def _converse_shape() -> Any:
    from botocore.session import Session

    return (
        Session()
        .get_service_model("bedrock-runtime")
        .operation_model("Converse")
        .input_shape
    )


def _by_botocore(body: Any, model: str) -> str | None:
    from botocore.validate import ParamValidator

    report = ParamValidator().validate({**body, "modelId": model}, _converse_shape())
    return str(report.generate_report()) if report.has_errors() else None


def _bedrock(body: Mapping[str, Any], model: str) -> str | None:
    messages = body.get("messages") or []
    config = body.get("inferenceConfig", {})
    roles = [message["role"] for message in messages]
    if roles[:1] != ["user"] or any(
        role == next_role for role, next_role in pairwise(roles)
    ):
        return "messages: the first must be of the user, and roles must alternate"
    if not all(
        block.get("text", "x").strip()
        for message in messages
        for block in message["content"]
    ):
        return "The text field in the ContentBlock object is blank."
    if wrong := refused_by_amazon(body, model):
        return wrong
    if "claude" not in model:
        last = (
            "This model requires the last turn to be a user message."
            if roles[-1] != "user"
            else None
        )
        return (
            "inferenceConfig: at most 1" if config.get("temperature", 0) > 1 else last
        )
    # Fields of the model itself are Anthropic's.
    names = {
        "maxTokens": "max_tokens",
        "temperature": "temperature",
        "topP": "top_p",
        "stopSequences": "stop_sequences",
    }
    talk = dict(as_anthropic(body))
    fields = {names[name]: value for name, value in config.items()}
    anthropic_body = {
        "max_tokens": 10**6,
        **fields,
        **body.get("additionalModelRequestFields", {}),
    }
    return refusal("anthropic", {"model": model, **talk, **anthropic_body})


def takes_no_sampling(model: str) -> bool:
    """Whether one of Anthropic's models takes no sampling parameters."""
    return any(
        part in model
        for part in ("4-7", "4-8", "opus-5", "sonnet-5", "haiku-5", "fable", "mythos")
    )


def _anthropic(body: Mapping[str, Any], model: str) -> str | None:
    thinking = body.get("thinking", {}).get("type", "disabled")
    last = body["messages"][-1]
    if body["messages"][0]["role"] != "user":
        return 'messages: first message must use the "user" role'
    if last["role"] == "assistant":
        if thinking != "disabled" or takes_no_sampling(model) or "4-6" in model:
            return "This model does not support assistant message prefill."
        if str(last["content"]) != str(last["content"]).rstrip():
            return (
                "messages: final assistant content cannot end with trailing whitespace"
            )
    if takes_no_sampling(model):
        for name in ("temperature", "top_p", "top_k"):
            if name in body:
                return f"`{name}` is deprecated for this model."
        if thinking == "enabled":
            return '"thinking.type.enabled" is not supported for this model.'
    if (
        thinking == "enabled"
        and body["thinking"]["budget_tokens"] >= body["max_tokens"]
    ):
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    if thinking != "disabled" and body.get("temperature", 1) != 1:
        return "`temperature` may only be set to 1 when thinking is enabled."
    if (
        "temperature" in body
        and "top_p" in body
        and any(part in model for part in ("4-1", "4-5", "4-6"))
    ):
        return "`temperature` and `top_p` cannot both be specified for this model."
    return refused_by_anthropic(body)


def _gemini(body: Mapping[str, Any], model: str) -> str | None:
    model = model.removeprefix("models/")
    if wrong := refused_by_google(body, model):
        return wrong
    ends = body["contents"][-1].get("role")
    if ends == "model" and re.match(r"gemini-(3\.5-flash-lite|3\.[6-9]|flash)", model):
        return "Requests ending with a model turn are not supported."
    thinking = body.get("generationConfig", {}).get("thinkingConfig")
    if thinking is None:
        return None
    if re.match(r"gemini-(1\.5|2\.0)|gemma", model):
        return "Thinking is not supported by this model."
    if "thinkingLevel" in thinking and ("thinkingBudget" in thinking or "2.5" in model):
        return "Thinking level is not supported for this model."
    if thinking.get("thinkingLevel") == "MINIMAL" and "pro" in model:
        return "Thinking level MINIMAL is not supported for this model."
    if "pro" in model and thinking.get("thinkingBudget") == 0:
        return "Budget 0 is invalid. This model only works in thinking mode."
    return None


def _cohere(body: Mapping[str, Any], model: str) -> str | None:
    if body["messages"][-1]["role"] not in ("user", "tool"):
        return "invalid request: the last message must be of role user or tool"
    return refused_in_chat(body)


def _mistral(body: Mapping[str, Any], model: str) -> str | None:
    *before, last = body["messages"]
    if last["role"] not in ("user", "tool") and not last.get("prefix"):
        return f"Expected last role User or Tool (or Assistant with prefix True) but got {last['role']}"
    if any(message.get("prefix") for message in before):
        return "Only the last message may have prefix True"
    if body.get("temperature") == 0 and body.get("top_p") not in (None, 1):
        return "top_p must be 1 when using greedy sampling."
    return refused_by_mistral(body)


def _chat(body: Mapping[str, Any], model: str) -> str | None:
    return refused_in_chat(body)


def _responses(body: Mapping[str, Any], model: str) -> str | None:
    return refused_in_responses(body)


def _embeddings(body: Mapping[str, Any], model: str) -> str | None:
    fits = "dimensions" not in body or body["model"].startswith("text-embedding-3")
    return None if fits else "This model does not support specifying dimensions."


_RULES: Mapping[str, Callable[[Mapping[str, Any], str], str | None]] = {
    "anthropic": _anthropic,
    "azure-inference": _chat,
    "azure-openai": _chat,
    "cohere": _cohere,
    "huggingface": _chat,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
    "mistral": _mistral,
    "openai-embeddings": _embeddings,
    "vertex": _gemini,
    "vertex-anthropic": _anthropic,
}
