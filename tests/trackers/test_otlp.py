"""Traces of a run as a collector on this machine receives them, decoded by OTLP's own schema."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate
from evalwright.core.errors import ConfigurationError
from evalwright.trackers.facts import TrackedRun, describe_run
from evalwright.trackers.otlp import CAPTURE_TEXTS, ENDPOINTS, log

pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.http",
    reason="OpenTelemetry is not installed: pip install 'evalwright[otlp]'",
)


class Collector(BaseHTTPRequestHandler):
    requests: list[tuple[str, bytes]]
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.requests.append((self.path, body))
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def collecting(status: int = 200) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    requests: list[tuple[str, bytes]] = []
    handler = type("Handler", (Collector,), {"requests": requests, "status": status})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def spans_of(requests: list[tuple[str, bytes]]) -> list[Any]:
    import gzip

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
    )

    spans = []
    for path, body in requests:
        assert path == "/v1/traces"
        content = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        message = ExportTraceServiceRequest.FromString(content)
        for resource_spans in message.resource_spans:
            for scope_spans in resource_spans.scope_spans:
                spans += scope_spans.spans
    return spans


def attributes_of(holder: Any) -> dict[str, Any]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value"))
        for pair in holder.attributes
    }


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrackedRun:
    monkeypatch.chdir(tmp_path)
    for name in (*ENDPOINTS, CAPTURE_TEXTS):
        monkeypatch.delenv(name, raising=False)
    Path("questions.csv").write_text("question,target\nHow many?,1\nWhich?,2\n")
    (finished,) = evaluate("questions.csv", ScriptedModel("1", name="demo/one"))
    return describe_run(finished, "key")


def test_each_sample_is_a_trace_with_its_response_and_its_scores(
    run: TrackedRun,
) -> None:
    with collecting() as (address, requests):
        assert log(run, address, "") == run.name
    spans = spans_of(requests)
    samples = [span for span in spans if not span.parent_span_id]
    responses = [span for span in spans if span.parent_span_id]
    assert (len(samples), len(responses)) == (2, 2)
    assert {span.trace_id for span in samples} == {span.trace_id for span in responses}
    asked = attributes_of(responses[0])
    assert asked["gen_ai.operation.name"] == "chat"
    assert asked["gen_ai.provider.name"] == "demo"
    assert asked["gen_ai.request.model"] == "one"
    values = {
        attributes_of(event)["gen_ai.evaluation.score.value"]
        for span in samples
        for event in span.events
    }
    assert values == {0.0, 1.0}
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)


def test_texts_are_sent_only_where_they_are_asked_for(
    run: TrackedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as (address, requests):
        log(run, address, "")
    assert "How many?" not in str(spans_of(requests))
    monkeypatch.setenv(CAPTURE_TEXTS, "true")
    with collecting() as (address, requests):
        log(run, address, "")
    text = str(spans_of(requests))
    assert "How many?" in text and "gen_ai.output.messages" in text


def test_a_run_that_is_sent_again_has_the_same_ids(run: TrackedRun) -> None:
    ids = []
    for _ in range(2):
        with collecting() as (address, requests):
            log(run, address, "")
        ids.append([(span.trace_id, span.span_id) for span in spans_of(requests)])
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 4


def test_the_endpoint_may_be_in_the_environment(
    run: TrackedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="otlp="):
        log(run, "", "")
    with collecting() as (address, requests):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        log(run, "", "")
    assert len(spans_of(requests)) == 4


def test_an_endpoint_that_refuses_is_an_error(run: TrackedRun) -> None:
    with (
        collecting(status=401) as (address, _),
        pytest.raises(ConfigurationError, match="did not take"),
    ):
        log(run, address, "")


def test_calls_of_tools_are_parts_of_messages() -> None:
    from evalwright.trackers.otlp import _input_messages

    call = {"name": "look", "arguments": "{}", "id": "c1"}
    result = {"tool_call_id": "c1", "tool_name": "look"}
    prompt = [
        ["user", "Where?"],
        ["assistant", "", {"tool_calls": [call]}],
        ["tool", "here", result],
    ]
    assert _input_messages({"prompt": prompt})[1:] == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": ""}, {"type": "tool_call", **call}],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": "here"}],
        },
    ]
