"""The wire format of Vectara's corpus queries, answered by its model Mockingbird."""

from __future__ import annotations

from typing import Any

from evalwright.core.errors import Rejected
from evalwright.core.requests import Generate
from evalwright.core.responses import Usage
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire


def query_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body.

    Raises:
        Rejected: the prompt has several turns, so it is not a query.
    """
    system, talk = form.system_and_talk(request, settings)
    if len(talk) != 1 or talk[0].role != "user":
        raise Rejected(
            f"{settings.where} takes one query, no conversation: use a single message"
            " of the user."
        )
    sampling = form.sampling(request, settings)
    parameters = form.without_none(
        {"max_tokens": sampling.max_tokens, "temperature": sampling.temperature}
    )
    generation: dict[str, Any] = {"generation_preset_name": settings.model}
    if parameters:
        generation["model_parameters"] = parameters
    body = {
        "query": "\n\n".join(filter(None, (system, talk[0].text))),
        "generation": generation,
        "save_history": False,
        "stream_response": False,
    }
    return form.merge_bodies(body, settings.extra_body)


def parse_query_reply(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the summary; the API reports neither tokens nor a finish reason."""
    summary = form.require_success(data, settings).get("summary")
    if not isinstance(summary, str):
        raise form.not_documented(settings, "summary as text", data)
    text, finish = form.apply_local_stops(summary, "stop", request.stop)
    return ReplyContent(text, "", finish)


WIRE = Wire(
    name="vectara-query",
    path=lambda settings: "/query",
    payload=query_payload,
    parse=parse_query_reply,
    usage=lambda data: Usage(),
    lacks=frozenset({"stop", "top_p", "seed"}),
    names_limit=False,
)
