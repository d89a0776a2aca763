"""otlp: the samples of a run as OpenTelemetry traces, by the conventions for generative AI.

Langfuse, Phoenix, Grafana and other programs that take OTLP over HTTP show them. Each sample is a
trace: a span of the sample with its scores, and in it a span for each response of the model. The
endpoint is `where`, else $OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or $OTEL_EXPORTER_OTLP_ENDPOINT;
headers, such as keys, are in $OTEL_EXPORTER_OTLP_HEADERS. Prompts and answers are sent only with
OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true.

Records have durations and no times of day: a sample begins where the sample before it ended.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import masked
from evalwright.runs.reader import open_run
from evalwright.trackers.facts import TrackedRun

CAPTURE_TEXTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable by which instrumentations of generative AI are told to send texts."""
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
TRACES_PATH = "/v1/traces"
_SPANS_A_REQUEST = 500
_NANOSECONDS = 1_000_000_000
MOST_TEXT_CHARS = 20_000
"""Longer texts are cut: collectors refuse requests of more than some megabytes."""


def log(run: TrackedRun, where: str, before: str) -> str:
    """Send the traces of all samples, and return the run's name.

    Their ids follow from the run and the sample, so that a run that is sent again adds no traces.

    Raises:
        ConfigurationError: no endpoint is named, or it did not take the traces.
    """
    exporter = _exporter(where)
    try:
        batch: list[Any] = []
        for span in _spans(run):
            batch.append(span)
            if len(batch) == _SPANS_A_REQUEST:
                _export(exporter, batch)
                batch = []
        if batch:
            _export(exporter, batch)
    finally:
        exporter.shutdown()
    return run.name


def _exporter(where: str) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if where:
        endpoint = where.rstrip("/")
        if not endpoint.endswith(TRACES_PATH):
            endpoint += TRACES_PATH
        return OTLPSpanExporter(endpoint=endpoint)
    if not any(os.environ.get(name) for name in ENDPOINTS):
        raise ConfigurationError(
            "No endpoint for traces is named: --track otlp=http://localhost:4318, or"
            f" set {ENDPOINTS[-1]}."
        )
    return OTLPSpanExporter()


def _export(exporter: Any, spans: list[Any]) -> None:
    from opentelemetry.sdk.trace.export import SpanExportResult

    if exporter.export(spans) is not SpanExportResult.SUCCESS:
        raise ConfigurationError(
            f"The endpoint for traces did not take {len(spans):,} spans. Check its"
            " address, and its key in OTEL_EXPORTER_OTLP_HEADERS."
        )


def _spans(run: TrackedRun) -> Iterator[Any]:
    """The spans of all samples, in the order of the record."""
    from opentelemetry.sdk.resources import Resource

    resource = Resource.create(
        {"service.name": "evalwright", "evalwright.run": run.name}
    )
    provider, _, model = run.settings.get("model", "").partition("/")
    request_attributes = {
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model or provider,
    }
    with_texts = os.environ.get(CAPTURE_TEXTS, "").lower() in ("true", "1")
    begin = int(run.started.timestamp() * _NANOSECONDS)
    for row in open_run(run.files[0].parent).rows():
        seconds = [
            latency
            for latency in row.get("timing", {}).get("latency", ())
            if isinstance(latency, int | float) and math.isfinite(latency)
        ]
        end = begin + int(max(sum(seconds), 0.0) * _NANOSECONDS)
        yield from _sample_spans(
            row,
            resource=resource,
            trace_id=_number(16, run.key, row["task"], row["id"], row["draw"]),
            begin=begin,
            end=end,
            request_attributes=request_attributes,
            with_texts=with_texts,
        )
        begin = end


def _sample_spans(
    row: Mapping[str, Any],
    *,
    resource: Any,
    trace_id: int,
    begin: int,
    end: int,
    request_attributes: Mapping[str, str],
    with_texts: bool,
) -> Iterator[Any]:
    """The span of a sample, and one for each response; times in nanoseconds since 1970."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

    def context(name: str) -> Any:
        span_id = _number(8, str(trace_id), name)
        return SpanContext(trace_id, span_id, False, TraceFlags(TraceFlags.SAMPLED))

    sample_context = context("sample")
    attributes: dict[str, Any] = {
        "evalwright.task": row["task"],
        "evalwright.sample": row["id"],
        "evalwright.repeat": row["draw"],
        "evalwright.outcome": str(row.get("outcome", "")),
    }
    if with_texts:
        attributes["evalwright.answer"] = _text(row.get("answer", ""))
    yield ReadableSpan(
        name=f"sample {row['task']}",
        context=sample_context,
        resource=resource,
        attributes=attributes,
        events=list(_score_events(row, end, with_texts=with_texts)),
        kind=SpanKind.INTERNAL,
        status=_status(row),
        start_time=begin,
        end_time=end,
    )
    latencies = row.get("timing", {}).get("latency", ())
    for number, response in enumerate(row.get("responses", ())):
        latency = latencies[number] if number < len(latencies) else 0
        response_end = min(end, begin + int(max(latency or 0, 0) * _NANOSECONDS))
        yield ReadableSpan(
            name=f"chat {request_attributes['gen_ai.request.model']}",
            context=context(f"response {number}"),
            parent=sample_context,
            resource=resource,
            attributes={
                **request_attributes,
                **_response_attributes(row, response, with_texts=with_texts),
            },
            kind=SpanKind.CLIENT,
            start_time=begin,
            end_time=response_end,
        )


def _response_attributes(
    row: Mapping[str, Any], response: Mapping[str, Any], *, with_texts: bool
) -> dict[str, Any]:
    usage = response.get("usage", {})
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": response.get("model"),
        "gen_ai.response.finish_reasons": [str(response.get("finish_reason", ""))],
        "gen_ai.usage.input_tokens": usage.get("input_tokens"),
        "gen_ai.usage.output_tokens": usage.get("output_tokens"),
        "evalwright.cost_usd": response.get("cost"),
    }
    if with_texts:
        output = {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": _text(response.get("text", ""))},
                *map(_call_part, response.get("tool_calls", ())),
            ],
            "finish_reason": str(response.get("finish_reason", "")),
        }
        attributes["gen_ai.input.messages"] = json.dumps(_input_messages(row))
        attributes["gen_ai.output.messages"] = json.dumps([output])
    return {name: value for name, value in attributes.items() if value is not None}


def _input_messages(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The prompt as messages, pictures left out; calls of tools and their results are parts."""
    prompt = row.get("prompt", "")
    turns = [("user", prompt)] if isinstance(prompt, str) else prompt
    messages = []
    for role, content, *extras in turns:
        tool_fields = extras[0] if extras else {}
        pieces = content if isinstance(content, list) else [content]
        parts = [
            {"type": "text", "content": _text(piece)}
            for piece in pieces
            if isinstance(piece, str)
        ]
        if role == "tool":
            response = "".join(part["content"] for part in parts)
            identifier = tool_fields.get("tool_call_id", "")
            parts = [
                {
                    "type": "tool_call_response",
                    "id": identifier,
                    "response": response,
                }
            ]
        parts += map(_call_part, tool_fields.get("tool_calls", ()))
        messages.append({"role": str(role or "user"), "parts": parts})
    return messages


def _call_part(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a tool as a part of a message."""
    return {
        "type": "tool_call",
        "id": call.get("id", ""),
        "name": _text(call.get("name", "")),
        "arguments": _text(call.get("arguments", "")),
    }


def _score_events(
    row: Mapping[str, Any], time: int, *, with_texts: bool
) -> Iterator[Any]:
    """The scores as events of evaluation."""
    from opentelemetry.sdk.trace import Event

    for scorer, score in row.get("scores", {}).items():
        attributes = {
            "gen_ai.evaluation.name": scorer,
            "gen_ai.evaluation.score.value": score.get("value"),
            "gen_ai.evaluation.score.label": score.get("label") or None,
            "evalwright.unsure": score.get("unsure") or None,
        }
        if with_texts and score.get("explanation"):
            attributes["gen_ai.evaluation.explanation"] = _text(score["explanation"])
        known = {name: value for name, value in attributes.items() if value is not None}
        yield Event("gen_ai.evaluation.result", known, time)


def _status(row: Mapping[str, Any]) -> Any:
    from opentelemetry.trace import Status, StatusCode

    failure = row.get("failure")
    if not failure:
        return Status(StatusCode.UNSET)
    return Status(StatusCode.ERROR, str(masked(str(failure.get("kind", "")))))


def _text(text: Any) -> str:
    return str(masked(str(text)))[:MOST_TEXT_CHARS]


def _number(n_bytes: int, *parts: object) -> int:
    """A number that follows from the parts, never 0."""
    digest = hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).digest()
    return int.from_bytes(digest[:n_bytes]) or 1
