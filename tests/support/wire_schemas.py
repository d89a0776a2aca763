"""What each provider documents of a request's body, strictly: JSON schemas, and rules between fields that no schema says.

`refusal(format, body, model)` says what the provider would refuse a body for. The conformance suite checks with it whatever the wire
formats build, and the strict server whatever comes over the wire.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

Schema = dict[str, Any]


def closed(required: str, **properties: Any) -> Schema:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


def some(items: Any, **more: Any) -> Schema:
    """An array with at least one item."""
    return {"type": "array", "minItems": 1, "items": items, **more}


def number(low: float | None = None, high: float | None = None, kind: Any = "number") -> Schema:
    """A number within bounds."""
    bounds = {"minimum": low, "maximum": high}
    return {"type": kind, **{name: value for name, value in bounds.items() if value is not None}}


def whole(low: float | None = None, high: float | None = None) -> Schema:
    """An integer within bounds."""
    return number(low, high, "integer")


def or_null(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def one_of(*values: Any) -> Schema:
    """One of these values."""
    return {"enum": list(values)}


TEXT: Schema = {"type": "string"}
SAID: Schema = {"type": "string", "minLength": 1}
FLAG: Schema = {"type": "boolean"}
ANY: Schema = {}
OBJECT: Schema = {"type": "object"}

_BLOCK = closed("type text", type={"const": "text"}, text=SAID, cache_control=ANY, citations=ANY)
_DISPLAY = one_of("summarized", "omitted", None)
_MESSAGES = closed(
    "model max_tokens messages",
    model=SAID,
    max_tokens=whole(1),
    messages=some(
        closed("role content", role=one_of("user", "assistant"), content={"oneOf": [SAID, some(_BLOCK)]})
    ),
    system={"oneOf": [TEXT, some(_BLOCK)]},
    temperature=number(0, 1),
    top_p=number(0, 1),
    top_k=whole(0),
    stop_sequences={"type": "array", "items": {"type": "string", "pattern": r"\S"}},
    stream=FLAG,
    metadata=OBJECT,
    service_tier=one_of("auto", "standard_only"),
    output_config=closed("", effort=one_of("low", "medium", "high", "xhigh", "max", None), format=ANY),
    thinking={
        "oneOf": [
            closed("type budget_tokens", type={"const": "enabled"}, budget_tokens=whole(1024), display=_DISPLAY),
            closed("type", type={"const": "adaptive"}, display=_DISPLAY),
            closed("type", type={"const": "disabled"}),
        ]
    },
    tools=ANY,
)  # fmt: skip
_RAW = {
    **_MESSAGES,
    "properties": {**_MESSAGES["properties"], "anthropic_version": {"const": "vertex-2023-10-16"}},
    "required": ["anthropic_version", "max_tokens", "messages"],
}

_PART = closed("text", text=TEXT, thought=FLAG, thoughtSignature=TEXT)
_CONTENT = closed("parts", role=one_of("user", "model"), parts=some(_PART))
_GENERATE = closed(
    "contents",
    contents=some(_CONTENT),
    systemInstruction=_CONTENT,
    safetySettings={"type": "array", "items": closed("category threshold", category=TEXT, threshold=TEXT)},
    tools=ANY,
    generationConfig=closed(
        "",
        stopSequences={"type": "array", "maxItems": 5, "items": SAID},
        responseMimeType=TEXT,
        responseSchema=OBJECT,
        candidateCount=whole(1, 8),
        maxOutputTokens=whole(1),
        temperature=number(0, 2),
        topP=number(0, 1),
        topK=number(1),
        seed=whole(-(2**31), 2**31 - 1),
        presencePenalty=number(),
        frequencyPenalty=number(),
        thinkingConfig=closed(
            "", includeThoughts=FLAG, thinkingBudget=whole(-1), thinkingLevel=one_of("MINIMAL", "LOW", "MEDIUM", "HIGH"),
        ),
    ),
)  # fmt: skip

_COHERE = closed(
    "model messages",
    model=TEXT,
    messages=some(closed("role content", role=one_of("system", "user", "assistant"), content=SAID)),
    stream=FLAG,
    max_tokens=whole(1),
    temperature=number(0),
    p=number(0.01, 0.99),
    k=whole(0, 500),
    stop_sequences={"type": "array", "items": TEXT, "maxItems": 5},
    seed=whole(0),
    frequency_penalty=number(0, 1),
    presence_penalty=number(0, 1),
    safety_mode=one_of("CONTEXTUAL", "STRICT", "OFF"),
    response_format=OBJECT,
    thinking=closed("type", type=one_of("enabled", "disabled"), token_budget=whole(1)),
)

_MISTRAL = closed(
    "model messages",
    model=TEXT,
    messages=some(
        {
            "anyOf": [
                closed("role content", role={"const": "assistant"}, content=TEXT, prefix=FLAG),
                closed("role content", role=one_of("system", "user"), content=TEXT),
            ]
        }
    ),
    temperature=or_null(number(0, 1.5)),
    top_p=or_null({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
    max_tokens=or_null(whole(0)),
    stream=FLAG,
    stop={"anyOf": [TEXT, {"type": "array", "items": TEXT}]},
    random_seed=or_null(whole(0)),
    response_format=OBJECT,
    presence_penalty=or_null(number()),
    frequency_penalty=or_null(number()),
    n={"const": 1},
    safe_prompt=FLAG,
    prompt_mode=one_of("reasoning", None),
    reasoning_effort=one_of("none", "high", None),
    metadata=or_null(OBJECT),
)

_EFFORT = one_of("none", "minimal", "low", "medium", "high", "xhigh", None)
_INPUT_PART = closed("type text", type=one_of("input_text", "output_text"), text=TEXT)
_RESPONSES = closed(
    "model input",
    model=TEXT,
    input={
        "anyOf": [
            TEXT,
            some(
                closed(
                    "role content",
                    type={"const": "message"},
                    role=one_of("user", "assistant", "system", "developer"),
                    content={"anyOf": [TEXT, some(_INPUT_PART)]},
                )
            ),
        ]
    },
    instructions=or_null(TEXT),
    max_output_tokens=or_null(whole(16)),
    temperature=or_null(number(0, 2)),
    top_p=or_null(number(0, 1)),
    store=or_null(FLAG),
    stream=or_null(FLAG),
    reasoning=or_null(closed("", effort=_EFFORT, summary=one_of("auto", "concise", "detailed", None))),
    text=closed("", verbosity=one_of("low", "medium", "high", None), format=OBJECT),
    metadata=or_null(OBJECT),
    include=ANY,
    service_tier=or_null(TEXT),
    truncation=one_of("auto", "disabled", None),
)

_REPLICATE = closed(
    "input",
    version=TEXT,
    input=closed(
        "prompt",
        prompt=TEXT,
        system_prompt=TEXT,
        max_tokens=whole(1),
        max_new_tokens=whole(1),
        max_completion_tokens=whole(1),
        temperature=number(0, 5),
        top_p=number(0, 1),
        top_k=whole(),
        seed=whole(),
        reasoning_effort=_EFFORT,
    ),
)

_EMBEDDINGS = closed(
    "input model",
    input={"anyOf": [SAID, some(SAID, maxItems=2048)]},
    model=TEXT,
    encoding_format=one_of("float", "base64"),
    dimensions=whole(1),
    user=TEXT,
)

_VECTARA = closed(
    "generated_text source_texts model_parameters",
    generated_text=SAID,
    source_texts=some(SAID),
    model_parameters=closed("", model_name={"const": "hhem_v2.3"}),
)

_STOP = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 4}, {"type": "null"}]}
_SHARED = {
    "model": TEXT,
    "max_tokens": or_null(whole(0)),
    "temperature": or_null(number(0, 2)),
    "top_p": or_null(number(0, 1)),
    "n": one_of(1, None),
    "stop": _STOP,
    "seed": or_null(whole()),
    "stream": or_null(FLAG),
    "stream_options": or_null(closed("", include_usage=FLAG, include_obfuscation=FLAG)),
    "presence_penalty": or_null(number(-2, 2)),
    "frequency_penalty": or_null(number(-2, 2)),
    "logit_bias": or_null(OBJECT),
    "user": TEXT,
}
_ROLE = one_of("system", "developer", "user", "assistant", "tool", "function")
_CHAT_TEXT = {"anyOf": [TEXT, some(closed("type text", type={"const": "text"}, text=TEXT))]}
_CHAT = closed(
    "model messages",
    **_SHARED,
    messages=some(closed("role content", role=_ROLE, content=_CHAT_TEXT, name=TEXT, refusal=ANY)),
    max_completion_tokens=or_null(whole(1)),
    logprobs=or_null(FLAG),
    top_logprobs=or_null(whole(0, 20)),
    reasoning_effort=or_null(TEXT),
    response_format=OBJECT,
    metadata=or_null(OBJECT),
    service_tier=or_null(TEXT),
    store=or_null(FLAG),
    verbosity=or_null(TEXT),
)
_COMPLETIONS = closed(
    "model prompt",
    **_SHARED,
    prompt=TEXT,
    logprobs=or_null(whole(0, 5)),
    echo=or_null(FLAG),
    suffix=or_null(TEXT),
    best_of=one_of(1, None),
)

SCHEMAS: Mapping[str, Schema] = {
    "anthropic": _MESSAGES,
    "cohere": _COHERE,
    "gemini": _GENERATE,
    "mistral": _MISTRAL,
    "azure-inference": _CHAT,
    "azure-openai": {**_CHAT, "required": ["messages"]},
    "huggingface": _CHAT,
    "openai-chat": _CHAT,
    "openai-completions": _COMPLETIONS,
    "openai-embeddings": _EMBEDDINGS,
    "openai-responses": _RESPONSES,
    "replicate": _REPLICATE,
    "vectara": _VECTARA,
    "vertex": _GENERATE,
    "vertex-anthropic": _RAW,
}
_SERVED_BY_MANY = ("azure-inference", "azure-openai", "huggingface", "openai-chat", "openai-completions")
"""Formats of many servers, each with fields of its own."""
_VALIDATORS = {name: Draft202012Validator(schema) for name, schema in SCHEMAS.items()}


def fault_in(name: str, body: Any) -> tuple[str, str] | None:
    """(field, words) of what does not fit the schema; None where all fits."""
    if _VALIDATORS[name].is_valid(body):
        return None
    wrong = best_match(_VALIDATORS[name].iter_errors(body))
    place = ".".join(map(str, wrong.absolute_path))
    if wrong.validator == "additionalProperties":
        unknown = next(field for field in wrong.instance if field not in wrong.schema["properties"])
        return (place or unknown).partition(".")[0], f"Unrecognized request argument supplied: {unknown}"
    if wrong.validator == "required":
        missing = next(field for field in wrong.validator_value if field not in wrong.instance)
        return (place or missing).partition(".")[0], f"Missing required parameter: '{missing}'."
    return place.partition(".")[0], f"{place or 'body'}: {wrong.message}"


def refusal(name: str, body: Any, model: str = "", extra: frozenset[str] = frozenset()) -> str | None:
    """What a provider of this format would refuse the body for; None where it fits. extra: fields that pass besides."""
    if name == "bedrock":
        return _by_botocore(body, model) or _bedrock(body, model)
    passing = extra if name in _SERVED_BY_MANY else ()
    wrong = fault_in(name, {field: value for field, value in body.items() if field not in passing})
    if wrong is not None:
        return wrong[1]
    rule = _RULES.get(name)
    return rule(body, body.get("model", model)) if rule else None


@cache
def _converse_shape() -> Any:
    from botocore.session import Session

    return Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def _by_botocore(body: Any, model: str) -> str | None:
    from botocore.validate import ParamValidator

    report = ParamValidator().validate({**body, "modelId": model}, _converse_shape())
    return str(report.generate_report()) if report.has_errors() else None


def _bedrock(body: Mapping[str, Any], model: str) -> str | None:
    messages, config = body.get("messages") or [], body.get("inferenceConfig", {})
    roles = [message["role"] for message in messages]
    if roles[:1] != ["user"] or any(one == other for one, other in pairwise(roles)):
        return "messages: the first must be of the user, and roles must alternate"
    if not all(block.get("text", "x").strip() for message in messages for block in message["content"]):
        return "The text field in the ContentBlock object is blank."
    if "claude" not in model:
        last = "This model requires the last turn to be a user message." if roles[-1] != "user" else None
        return "inferenceConfig: at most 1" if config.get("temperature", 0) > 1 else last
    # Fields of the model itself are Anthropic's.
    names = {
        "maxTokens": "max_tokens",
        "temperature": "temperature",
        "topP": "top_p",
        "stopSequences": "stop_sequences",
    }
    talk = [{"role": turn["role"], "content": turn["content"][0]["text"]} for turn in messages]
    fields = {names[name]: value for name, value in config.items()}
    made = {"max_tokens": 10**6, **fields, **body.get("additionalModelRequestFields", {})}
    return refusal("anthropic", {"model": model, "messages": talk, **made})


def takes_no_sampling(model: str) -> bool:
    """Whether one of Anthropic's models takes no sampling parameters."""
    return any(part in model for part in ("4-7", "4-8", "opus-5", "sonnet-5", "haiku-5", "fable", "mythos"))


def _anthropic(body: Mapping[str, Any], model: str) -> str | None:
    thinking = body.get("thinking", {}).get("type", "disabled")
    last = body["messages"][-1]
    if body["messages"][0]["role"] != "user":
        return 'messages: first message must use the "user" role'
    if last["role"] == "assistant":
        if thinking != "disabled" or takes_no_sampling(model) or "4-6" in model:
            return "This model does not support assistant message prefill."
        if str(last["content"]) != str(last["content"]).rstrip():
            return "messages: final assistant content cannot end with trailing whitespace"
    if takes_no_sampling(model):
        for name in ("temperature", "top_p", "top_k"):
            if name in body:
                return f"`{name}` is deprecated for this model."
        if thinking == "enabled":
            return '"thinking.type.enabled" is not supported for this model.'
    if thinking == "enabled" and body["thinking"]["budget_tokens"] >= body["max_tokens"]:
        return "`max_tokens` must be greater than `thinking.budget_tokens`."
    if thinking != "disabled" and body.get("temperature", 1) != 1:
        return "`temperature` may only be set to 1 when thinking is enabled."
    if "temperature" in body and "top_p" in body and any(part in model for part in ("4-1", "4-5", "4-6")):
        return "`temperature` and `top_p` cannot both be specified for this model."
    return None


def _gemini(body: Mapping[str, Any], model: str) -> str | None:
    model = model.removeprefix("models/")
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
    ends = body["messages"][-1]["role"]
    return None if ends == "user" else "invalid request: the last message must be of role user"


def _mistral(body: Mapping[str, Any], model: str) -> str | None:
    *before, last = body["messages"]
    if last["role"] != "user" and not last.get("prefix"):
        return f"Expected last role User or Tool (or Assistant with prefix True) but got {last['role']}"
    if any(message.get("prefix") for message in before):
        return "Only the last message may have prefix True"
    if body.get("temperature") == 0 and body.get("top_p") not in (None, 1):
        return "top_p must be 1 when using greedy sampling."
    return None


def _embeddings(body: Mapping[str, Any], model: str) -> str | None:
    fits = "dimensions" not in body or body["model"].startswith("text-embedding-3")
    return None if fits else "This model does not support specifying dimensions."


_RULES: Mapping[str, Callable[[Mapping[str, Any], str], str | None]] = {
    "anthropic": _anthropic,
    "cohere": _cohere,
    "gemini": _gemini,
    "mistral": _mistral,
    "openai-embeddings": _embeddings,
    "vertex": _gemini,
    "vertex-anthropic": _anthropic,
}
