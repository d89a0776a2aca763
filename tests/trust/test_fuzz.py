"""Any bytes, files and texts: a value or an error of ours that says what is wrong, and never
anything else.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalwright.cli import main
from evalwright.compat.hhem.importing import import_hhem
from evalwright.compat.lm_eval.runs.importing import import_lm_eval
from evalwright.compat.open_factual_bench.importing import import_ofb
from evalwright.core.errors import EvalwrightError, RequestError
from evalwright.core.requests import Generate
from evalwright.models.remote.events import KINDS, gather_events
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire import FORMATS, wire
from evalwright.models.remote.wire.format import Settings

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
import worst_case

fuzzed = settings(
    derandomize=True,
    max_examples=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
SETTINGS = Settings("m", "host", base_url="http://host/v1")

NAMES = [
    "id", "choices", "message", "content", "text", "error", "code", "type", "delta", "finish_reason", "usage",
    "prompt_tokens", "completion_tokens", "index", "logprobs", "tokens", "token_logprobs", "candidates",
    "parts", "output", "outputs", "data", "event", "results", "config", "doc_id", "doc", "target",
    "arguments", "resps", "filtered_resps", "filter", "metrics", "acc", "summary", "article", "model", "task",
    "score", "name", "version", "message_stop", "stop_reason", "completion", "role", "details", "reason",
]  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("ab1 \n\ud800\x00é", max_size=8) | st.sampled_from(NAMES)
    | st.just(10**400) | st.just("x" * 5000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
OBJECTS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8)
JUNK = st.binary(max_size=60) | st.sampled_from(
    [b"[" * 5000, b'{"a":' * 5000, b"\xff\xfe", b"data:", b"9" * 5000, b"", b"NaN"]
)


def written(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("name", FORMATS)
@fuzzed
@given(data=OBJECTS | VALUES)
def test_any_json_as_a_reply(name: str, data: Any) -> None:
    try:
        found = wire(name).read(Reply(data), Generate("hello"), SETTINGS)
    except RequestError as error:
        assert len(str(error)) > 20
    else:
        assert isinstance(found.as_dict(), dict)


async def _pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


@pytest.mark.parametrize(
    "name", [name for name in FORMATS if wire(name).gather is not None]
)
@fuzzed
@given(
    lines=st.lists(st.sampled_from([b"data: ", b"event: ", b"", b":", b"data"]).flatmap(lambda head: (JUNK | OBJECTS.map(written)).map(lambda body: head + body)), max_size=6),
    size=st.integers(1, 40),
)  # fmt: skip
def test_any_bytes_as_a_stream(name: str, lines: list[bytes], size: int) -> None:
    form: Any = wire(name)
    for decoding in ("sse", "aws") if form.decoding == "aws" else ("sse",):
        if decoding == "aws":
            pytest.importorskip("botocore")
        body = b"\n\n".join(lines) + b"\n\n"
        try:
            asyncio.run(
                gather_events(
                    "host",
                    KINDS[decoding],
                    _pieces(body, size),
                    form.gather(SETTINGS),
                    decoding,
                )
            )
        except RequestError as error:
            assert len(str(error)) > 20


def imported_by_hhem(path: Path, out: Path) -> object:
    return import_hhem(path, out)


def imported_by_ofb(path: Path, out: Path) -> object:
    return import_ofb(path, out)


def imported_by_lm_eval(path: Path, out: Path) -> object:
    return import_lm_eval(path, out)


IMPORTERS: list[tuple[Callable[[Path, Path], object], tuple[str, ...]]] = [
    (imported_by_lm_eval, ("results_2026-01-01T00-00-00.000000.json", "samples_a_2026-01-01T00-00-00.000000.jsonl")),
    (imported_by_hhem, ("judgements.jsonl", "summaries.jsonl")),
    (imported_by_ofb, ("results.json", "m.json")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("importer", "names"), IMPORTERS, ids=lambda one: getattr(one, "__name__", "")
)
@fuzzed
@given(
    bodies=st.lists(
        st.lists(JUNK | OBJECTS.map(written), min_size=1, max_size=3),
        min_size=2,
        max_size=2,
    )
)
def test_any_files_to_import(
    importer: Callable[[Path, Path], object],
    names: tuple[str, ...],
    bodies: list[list[bytes]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("files")
    for name, body in zip(names, bodies, strict=True):
        (folder / name).write_bytes(b"\n".join(body))
    try:
        importer(folder, folder / "out")
    except EvalwrightError as error:
        assert len(str(error)) > 20


KEYS = [
    "task", "version", "dataset", "path", "rows", "hub", "revision", "where", "sample", "input", "target",
    "choices", "metadata", "prompt", "user", "system", "few_shot", "count", "answer", "mode", "draws", "stop",
    "scorers", "metrics", "for_each", "include", "extends",
]  # fmt: skip
YAML = st.recursive(
    st.sampled_from(["1", "x", "[]", "{}", "null", "'{{ a }}'", "'{{ a'", "'{% for %}'", "choice", "generate", "-1", "1e999", "'\\ud800'", "*a", "&a x", "!!set {a}", "true", "~", "'../..'", "letter"]),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
    | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4).map(lambda parts: "{" + ", ".join(f"{k}: {v}" for k, v in parts.items()) + "}"),
    max_leaves=8,
)  # fmt: skip


@fuzzed
@given(
    parts=st.dictionaries(st.sampled_from(KEYS), YAML, max_size=7),
    junk=st.just(b"") | JUNK,
)
def test_any_task_file(
    parts: dict[str, str], junk: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("task") / "own.yaml"
    lines = ["task: own", "dataset: {rows: [{a: x, input: y, target: z}]}", *(f"{key}: {value}" for key, value in parts.items())]  # fmt: skip
    kept = {line.partition(":")[0]: line for line in lines}
    path.write_bytes("\n".join(kept.values()).encode() + b"\n" + junk)
    assert main(["tasks", "preview", str(path)]) in (0, 1, 2)
    assert main(["tasks", "show", str(path)]) in (0, 2)


TEXTS = st.lists(
    st.sampled_from(sorted(set(worst_case.SHAPES.values()))) | st.sampled_from(["Paris", "Ada Lovelace", "12 May 1999", "1,234.5 km/h", "\\frac{1}{2}", "yes", "London [1].", "```python\ndef add(a, b):\n    return a + b\n```"]) | st.text(max_size=6),
    max_size=12,
).map(" ".join) | st.text(max_size=40)  # fmt: skip


@pytest.mark.parametrize("case", worst_case.CASES)
@fuzzed
@given(text=TEXTS)
def test_any_text_has_a_score(case: str, text: str) -> None:
    assert worst_case.score_text(case, text) is not None


@pytest.mark.parametrize("case", worst_case.CASES)
def test_a_long_text_and_its_beginnings_have_a_score(case: str) -> None:
    texts = list(worst_case.texts(20_000).values())
    for text in texts[::17] + [text[:length] for text in texts for length in (5, 50)]:
        assert worst_case.score_text(case, text) is not None
