"""Vectara's query of a corpus: the prompt is the query, and a model of theirs (Mockingbird) writes
a summary of what is found.
"""

from __future__ import annotations

from typing import Any

from evalwright.core.errors import Rejected
from evalwright.core.requests import Generate
from evalwright.core.responses import Usage
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import Said, Settings, Wire


def query_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body.

    Nothing is kept as a conversation. Raises Rejected for a prompt of several turns, which is no
    query.
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
    return form.merged(body, settings.extra_body)


def query_said(data: Any, request: Generate, settings: Settings) -> Said:
    """What the summary says; the interface names neither tokens nor why it ended."""
    summary = form.sound(data, settings).get("summary")
    if not isinstance(summary, str):
        raise form.not_documented(settings, "summary as text", data)
    text, finish = form.cut_here(summary, "stop", request.stop)
    return Said(text, "", finish)


WIRE = Wire(
    name="vectara-query",
    path=lambda settings: "/query",
    payload=query_payload,
    said=query_said,
    usage=lambda data: Usage(),
    lacks=frozenset({"stop", "top_p", "seed"}),
    names_limit=False,
)
