"""The wire format of Replicate: create a prediction, then poll it until it ends.

Models have inputs, not messages. `owner/name` is an official model; `owner/name:version` or a
version hash is any other. A prediction has its own address, used only if it is below the base URL,
because the key is sent with it.
"""

from __future__ import annotations

import re
from typing import Any

from evalwright.core.errors import Overloaded, Rejected
from evalwright.core.requests import Generate
from evalwright.core.responses import Usage
from evalwright.models.remote.exchange import Call, Polling, Reply
from evalwright.models.remote.http_faults import clean
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire

_NAME = re.compile(
    r"(?P<model>\w[\w.-]*/\w[\w.-]*)?(?:(?(model):)(?P<version>[0-9a-f]{64}))?",
    re.ASCII,
)
_RUNNING = ("starting", "processing")
_ENDED_BADLY = ("failed", "canceled", "aborted")


def path(settings: Settings) -> str:
    """Return the path to create a prediction with this model."""
    model, version = _model(settings)
    return "/predictions" if version else f"/models/{model}/predictions"


def _model(settings: Settings) -> tuple[str, str]:
    """Return (owner/name, version) of the model, one of them possibly "".

    Raises:
        Rejected: the name has another form.
    """
    match = _NAME.fullmatch(settings.model)
    if not settings.model or match is None:
        raise Rejected(
            f"'{clean(settings.model, 80)}' is not a model of {settings.where}: write"
            " owner/name, owner/name:version, or the version's 64 hexadecimal digits."
        )
    return match["model"] or "", match["version"] or ""


def replicate_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the body: one prompt and one system prompt.

    Raises:
        Rejected: the prompt is a conversation, for which there is no input.
    """
    system, turns = form.system_and_turns(request.prompt)
    if len(turns) != 1 or turns[0].role != "user":
        raise Rejected(
            f"The models of {settings.where} take one prompt and one system prompt, no"
            " conversation and no beginning of an answer: use a single message of the"
            " user, or write the prompt as text."
        )
    sampling = form.sampling(request, settings)
    prompt = (
        turns[0].text
        if settings.system_field or not system
        else f"{system}\n\n{turns[0].text}"
    )
    fields = {
        settings.system_field: system or None,
        settings.tokens_field: sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
    }
    fields.pop("", None)
    body: dict[str, Any] = {"input": {"prompt": prompt, **form.without_none(fields)}}
    version = _model(settings)[1]
    if version:
        body["version"] = version
    return form.merge_bodies(body, settings.extra_body)


def ended(reply: Reply, settings: Settings) -> bool:
    """Return whether a prediction has ended.

    Raises:
        BadReply: the reply is not a prediction.
    """
    return _status(reply.data, settings) not in _RUNNING


def poll(reply: Reply, settings: Settings) -> Call:
    """Build the call that polls a prediction."""
    return Call(_below(reply, "get", settings), method="GET")


def cancel(reply: Reply, settings: Settings) -> Call:
    """Build the call that cancels a prediction."""
    return Call(_below(reply, "cancel", settings), {})


def _status(data: Any, settings: Settings) -> str:
    status = form.get_nested(data, "status")
    if status not in (*_RUNNING, *_ENDED_BADLY, "succeeded"):
        raise form.not_documented(settings, "a prediction with its status", data)
    return str(status)


def _below(reply: Reply, name: str, settings: Settings) -> str:
    """Return the path below the base URL of one of a prediction's addresses.

    Raises:
        Rejected: the address is elsewhere.
    """
    url = form.get_nested(reply.data, "urls", name)
    if not isinstance(url, str):
        raise form.not_documented(settings, f"urls.{name}", reply.data)
    suffix = url.removeprefix(settings.base_url)
    if suffix == url or not re.fullmatch(r"/predictions/[\w-]+(/cancel)?", suffix):
        raise Rejected(
            f"{settings.where} names another address for the prediction"
            f" ({clean(url, 100)}); it was not followed, because the key would be sent"
            " to it."
        )
    return suffix


def parse_prediction(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a prediction that has ended."""
    status = _status(data, settings)
    if status in _ENDED_BADLY:
        reason = clean(str(data.get("error") or "it gave no reason"), 300)
        raise Overloaded(
            f"{settings.where} did not answer, the prediction has {_words(status)}:"
            f" {reason}"
        )
    output = data.get("output")
    if isinstance(output, list) and all(isinstance(piece, str) for piece in output):
        output = "".join(output)
    if data.get("data_removed") or not (output is None or isinstance(output, str)):
        raise form.not_documented(settings, "output as text or a list of texts", data)
    usage = _usage(data)
    most = form.sampling(request, settings).max_tokens
    finish = "length" if most is not None and usage.output_tokens >= most else "stop"
    return ReplyContent(output or "", "", finish, usage, data.get("model"))


def _usage(data: Any) -> Usage:
    return form.usage_of(
        form.get_nested(data, "metrics"), "input_token_count", "output_token_count"
    )


def _words(status: str) -> str:
    return "failed" if status == "failed" else f"been {status}"


WIRE = Wire(
    name="replicate",
    path=path,
    payload=replicate_payload,
    parse=parse_prediction,
    usage=_usage,
    model_in_path=True,
    polling=Polling(ended, poll, cancel),
    # Not all models have an input for stop strings, so the answer is cut here, where it is exact.
    lacks=frozenset({"stop"}),
)
