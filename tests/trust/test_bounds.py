"""Work on text from others ends: templates, patterns, scorers, streams, replies, JSON and YAML
made to take all time and memory.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import tracemalloc
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evalwright import bounded
from evalwright.cli import main
from evalwright.compat.lm_eval.tasks import rendering
from evalwright.compat.lm_eval.tasks import task_yaml as files
from evalwright.compat.lm_eval.tasks.filters import build_pipelines
from evalwright.core.errors import (
    BadReply,
    DatasetError,
    EvalwrightError,
    Rejected,
    ScoringError,
    TaskError,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.samples import Answer, Sample
from evalwright.models.local.chat_template import ChatTemplate
from evalwright.models.registry import open_model
from evalwright.models.remote.events import gather_events
from evalwright.scorers import registry
from evalwright.tasks import templates
from evalwright.tasks._sandbox import ENVIRONMENT
from evalwright.tasks.datasets import formats
from evalwright.tasks.datasets import jsonl_rows as rows
from evalwright.tasks.datasets.formats import read_rows
from evalwright.tasks.linear_templates import is_linear
from support.command import write_questions
from support.runs import make_run
from support.typed import typed

HOSTILE = {
    "doubling": "{% set n = namespace(x=text) %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "doubling without a loop": "".join(f"{{% set x{i + 1} = x{i} ~ x{i} %}}" for i in range(50)).replace("x0", "text"),
    "a width": "{{ '%2999999999s' % text }}",
    "a width by format": "{{ '{:>2999999999}'.format(text) }}",
    "padding": "{{ text.ljust(2999999999) }}{{ text | center(2999999999) }}",
    "replacing": "{{ text" + " | replace('a', 'aaaaaaaaaa')" * 12 + " }}",
    "replacing by a method": "{{ text" + ".replace('a', 'aaaaaaaaaa')" * 12 + " }}",
    "joining": "{{ text" + " | list | join('aaaaaaaaaa')" * 10 + " }}",
    "repeating": "{{ (text * 99999) * 99999 }}",
    "a power": "{{ 9 ** 9 ** 9 }}",
    "recursion": "{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}",
    "loops in loops": "".join(f"{{% for i{n} in range(999) %}}" for n in range(6)) + "{% endfor %}" * 6,
    "loops over the row": "".join(f"{{% for i{n} in text %}}" for n in range(9)) + "x" + "{% endfor %}" * 9,
    "a loop that looks at the whole": "{% for a in text %}{% if text | upper == text | lower %}{% endif %}{% endfor %}",
    "indenting": "{{ text | list | join('\\n') | indent(999999999) }}",
    "rows": "{{ text | batch(999999999, 'x') | list }}",
}  # fmt: skip


@pytest.fixture(autouse=True)
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "SECONDS", 0.3)
    monkeypatch.setattr(bounded, "_strikes", Counter())


def by_task(source: str, text: str) -> str:
    return templates.text(source)({"text": text})


def by_chat(source: str, text: str) -> str:
    return ChatTemplate("{% set text = messages[0].content %}" + source, {}).render(
        (Message("user", text),)
    )


def by_foreign(source: str, text: str) -> str:
    return rendering.render(source, {"text": text})


@pytest.mark.parametrize(
    ("name", "render"),
    [(name, by_task) for name in HOSTILE]
    + [(name, render) for name in [*HOSTILE][::4] for render in (by_chat, by_foreign)],
)
def test_a_template_that_would_take_all_time_or_memory_is_ended(
    name: str, render: Callable[[str, str], str]
) -> None:
    try:
        text = render(HOSTILE[name], "a" * 20_000)
    except (
        templates.TemplateError,
        EvalwrightError,
        bounded.LimitExceeded,
        bounded.Raised,
    ) as error:
        assert len(str(error)) > 15
    else:  # what can be given within the limits is given
        assert len(text) < 1 << 28


@pytest.mark.parametrize("name", HOSTILE)
def test_no_such_template_is_rendered_in_the_program_itself(name: str) -> None:
    assert not is_linear(ENVIRONMENT.parse(HOSTILE[name]))


def test_what_is_constant_in_a_template_is_not_worked_out_in_the_program_itself() -> (
    None
):
    tracemalloc.start()
    try:
        with pytest.raises(templates.TemplateError):
            templates.text("{{ 'a' * 200000000 }}")({})
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "source",
    [
        "{% for choice in choices %}{{ loop.index }}. {{ choice.text | trim }}\n{% endfor %}",
        "{{ question.strip() }} {% if a is defined and choices | length > 2 %}{{ choices[0] }}{% else %}x{% endif %}",
        "{{ text | replace('_', ' ') | lower }}{{ first ~ ': ' ~ second }}",
        "{% for i in range(choices.text | length) %}{{ choices.label[i] }}{% endfor %}",
        "{{ choices.label.index(answerKey) }}{{ sentence.split('_', 1)[1] }}",
    ],
)
def test_what_task_files_mostly_write_is_rendered_without_a_process(
    source: str,
) -> None:
    assert is_linear(ENVIRONMENT.parse(source))


def test_a_hostile_template_costs_seconds_and_not_seconds_for_each_row() -> None:
    render = templates.text(HOSTILE["loops over the row"])
    for _ in range(bounded.STRIKES):
        with pytest.raises(templates.TemplateError, match="s of processor time"):
            render({"text": "a" * 50})
    with pytest.raises(templates.TemplateError, match="is not tried again"):
        render({"text": "a" * 50})


def test_a_pattern_from_a_file_that_backtracks_is_ended() -> None:
    step = {"function": "regex", "regex_pattern": r"(a+)+b"}
    (pipeline,) = build_pipelines([{"name": "own", "filter": [step]}], "task")
    assert pipeline([["aab and ab"]], {}) == [["aa"]]
    with pytest.raises(
        ScoringError,
        match=r"'\(a\+\)\+b' cannot be used .*more than",
    ):
        pipeline([["a" * 60]], {})
    with pytest.raises(TaskError, match="cannot be used: missing"):
        build_pipelines(
            [{"name": "own", "filter": [{**step, "regex_pattern": "(a"}]}], "task"
        )


def test_the_process_is_started_again_and_gives_plain_values_only() -> None:
    with pytest.raises(bounded.LimitExceeded, match="memory"):
        bounded.call(str.ljust, "x", 1 << 40)
    assert bounded.each(re.sub, [("a", "b", "aa"), ("a", "c", "aa")]) == ["bb", "cc"]
    with pytest.raises(bounded.Raised, match=r"is not a plain value"):
        bounded.call(re.compile, "a")
    with pytest.raises(bounded.LimitExceeded, match="nested too deeply"):
        bounded.call(json.loads, "[" * 100_000)


def test_the_process_has_no_key_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even what a template that left its sandbox could read: no variable but those of
    language, time zone and libraries.
    """
    for name in (
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "HTTPS_PROXY",
        "DATABASE",
        "EVALWRIGHT_STORE",
    ):
        monkeypatch.setenv(name, "sk-environment-0123456789")
    monkeypatch.setenv("TZ", "Asia/Seoul")
    process = bounded.Process()
    try:
        there = bounded.call(_environment, process=process)
    finally:
        process.close()
    kept = {"DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "TZ"}
    assert (
        set(there) <= {*kept, "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}
        and there["TZ"] == "Asia/Seoul"
    )


def _environment() -> dict[str, str]:
    inherited = (
        Path("/proc/self/environ").read_bytes().decode()
        if Path("/proc/self/environ").exists()
        else ""
    )
    assert "sk-environment" not in inherited
    return dict(os.environ)


def test_a_long_answer_is_scored_in_the_process_with_limits_as_elsewhere() -> None:
    sample = Sample("1", targets=("word",))
    answer = Answer("word " * 10_000)
    assert registry.bind("token-f1").function(
        sample, answer
    ) == registry._score_in_process("token-f1", {}, sample, answer)


# -- replies
# ------------------------------------------------------------------------------------------------------------


class _Kept:
    """Takes one event."""

    def __init__(self) -> None:
        self.data: Any = None
        self.has_text = False
        self.names: dict[str, None] = {}

    def add(self, event: str, data: Any) -> bool:
        self.data = data
        self.has_text = True
        return True

    def ended(self) -> bool:
        return False

    def result(self) -> Any:
        return self.data


async def _cut(body: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


def _frame(payload: bytes) -> bytes:
    head = (len(payload) + 16).to_bytes(4) + bytes(4)
    head += zlib.crc32(head).to_bytes(4)
    return head + payload + zlib.crc32(head + payload).to_bytes(4)


def test_one_event_of_16_mib_is_read_in_the_time_of_its_size() -> None:
    data = json.dumps({"text": "x" * (16 << 20)}).encode()
    for body, decoding, kind in (
        (b"data: " + data + b"\n\n", "sse", "text/event-stream"),
        (_frame(data), "aws", "application/vnd.amazon.eventstream"),
    ):
        if decoding == "aws":
            pytest.importorskip("botocore")
        found = asyncio.run(
            gather_events("host", kind, _cut(body, 1400), _Kept(), decoding)
        )
        assert len(found["text"]) == 16 << 20


def test_a_frame_that_says_it_is_huge_is_refused_before_it_comes() -> None:
    pytest.importorskip("botocore")
    head = (1 << 31).to_bytes(4) + bytes(4)
    body = head + zlib.crc32(head).to_bytes(4) + b"x"
    with pytest.raises(BadReply, match="the head of a frame is damaged"):
        asyncio.run(gather_events("host", None, _cut(body, 5), _Kept(), "aws"))


def _served(body: bytes, headers: str, ask: Callable[[str], Any]) -> Any:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(
            f"HTTP/1.1 200 OK\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        writer.close()

    async def run() -> Any:
        async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await ask(f"http://127.0.0.1:{port}/v1")

    return asyncio.run(run())


@pytest.mark.parametrize("packed", [False, True])
def test_a_reply_may_be_as_large_as_what_was_asked_for(packed: bool) -> None:
    reply = {
        "choices": [{"message": {"content": "x" * (8 << 20)}, "finish_reason": "stop"}]
    }
    body = json.dumps(reply).encode()
    headers = "Content-Type: application/json\r\n" + (
        "Content-Encoding: gzip\r\n" if packed else ""
    )

    async def ask(url: str, tokens: int) -> Any:
        model: Any = open_model(f"openai/{url}#m")
        try:
            return await model.answer(Generate("hello", max_tokens=tokens))
        finally:
            await model.close()

    sent = gzip.compress(body) if packed else body
    with pytest.raises(Rejected, match="a reply of more than 4259840 bytes"):
        _served(sent, headers, lambda url: ask(url, 16))
    assert len(_served(sent, headers, lambda url: ask(url, 4000)).text) == 8 << 20


# -- files
# --------------------------------------------------------------------------------------------------------------

LETTERS = "abcdefghij"
YAML_BOMBS = {
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{two}: &{two} [{', '.join([f'*{one}'] * 9)}]\n" for one, two in pairwise(LETTERS)),
    "merges": "a: &a {k: v}\n"
    + "".join(f"{two}: &{two}\n  <<: [{', '.join([f'*{one}'] * 9)}]\n" for one, two in pairwise(LETTERS)),
    "itself": "task: &a [*a]\n",
    "brackets": "task: " + "[" * 200_000,
    "braces": "task: " + "{a: " * 200_000,
    "dashes": "task:\n  " + "- " * 200_000,
    "a time that is none": "task: !!timestamp x",
}  # fmt: skip


@pytest.mark.parametrize("name", YAML_BOMBS)
def test_a_yaml_bomb_is_an_error_that_says_what(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bomb.yaml"
    path.write_text(YAML_BOMBS[name], encoding="utf-8")
    with pytest.raises(TaskError, match=r"bomb\.yaml"):
        files.parse(path)
    assert main(["tasks", "show", str(path)]) == 2
    error = capsys.readouterr().err
    assert "bomb.yaml" in error and "Traceback" not in error


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"a":' * 200_000, '{"schema": 1, "id": ' + "9" * 5000 + "}", "\ud800", '{"schema": NaN}', ""],
)  # fmt: skip
def test_a_json_bomb_in_a_record_is_an_error_that_says_what(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "runs", scores=[1.0], model="demo/m", name="run")
    for file in ("run.json", "samples.jsonl"):
        path = tmp_path / "runs" / "run" / file
        kept = path.read_bytes()
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        assert main(["runs", "show", str(tmp_path / "runs" / "run")]) in (0, 2)
        assert main(
            ["compare", str(tmp_path / "runs" / "run"), str(tmp_path / "runs" / "run")]
        ) in (0, 1, 2)
        path.write_bytes(kept)
    assert "Traceback" not in capsys.readouterr().err


def test_a_parquet_bomb_is_read_in_pieces(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "bomb.parquet"
    table = pyarrow.table(
        {"text": pyarrow.array(["x" * (1 << 20)] * 300).dictionary_encode()}
    )
    parquet.write_table(table, path, compression="zstd")
    assert path.stat().st_size < 1 << 20
    with pytest.raises(DatasetError, match="more than"):
        list(read_rows(path, "parquet"))


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_parquet_bomb_of_few_rows_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dictionary: bool
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "bomb.parquet"
    cells = pyarrow.array(["x" * (150 << 20)])
    table = pyarrow.table(
        {"text": pyarrow.DictionaryArray.from_arrays([0] * 500, cells)}
        if dictionary
        else {"text": cells}
    )
    with parquet.ParquetWriter(
        path, table.schema, compression="zstd", use_dictionary=dictionary
    ) as file:
        for _ in range(1 if dictionary else 2):
            file.write_table(table)
    sizes: list[int] = []
    read = parquet.ParquetFile.iter_batches

    def noted(self: Any, batch_size: int, **options: Any) -> Any:
        sizes.append(batch_size)
        return read(self, batch_size=batch_size, **options)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", noted)
    with pytest.raises(DatasetError, match="more than"):
        list(read_rows(path, "parquet"))
    assert sizes == ([1] if dictionary else [])


@pytest.mark.parametrize(
    "name, text",
    [
        ("rows.jsonl", '{"input": "%s"}\n'),
        ("rows.json", '[{"input": "%s"}]'),
        ("rows.csv", 'input\n"%s"\n'),
    ],
)
def test_a_row_without_end_is_an_error_that_says_so(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    for module in (rows, formats):
        monkeypatch.setattr(module, "LONGEST_LINE", 1 << 21)
    write_questions(own_folder, 1)
    task = own_folder / "questions.yaml"
    task.write_text(task.read_text().replace("questions.jsonl", name))
    (own_folder / name).write_text(text % ("x" * (1 << 23)))
    done = typed("tasks", "preview", "questions.yaml")
    assert done.code == 2 and ("2 MiB" in done.err or "field larger" in done.err), (
        done.text
    )


@pytest.mark.parametrize(
    "name, command",
    [
        ("questions.yaml", ["tasks", "check", "questions.yaml"]),
        ("suite.yaml", ["run", "--config", "suite.yaml"]),
        ("prompt.txt", ["tasks", "preview", "prompted.yaml"]),
        ("runs/made/run.json", ["runs", "show", "made"]),
        ("runs/made/samples.jsonl", ["runs", "samples", "made"]),
    ],
)
def test_a_file_that_is_read_whole_and_a_line_have_a_size(
    own_folder: Path, name: str, command: list[str]
) -> None:
    write_questions(own_folder, 1)
    task = (own_folder / "questions.yaml").read_text()
    (own_folder / "prompted.yaml").write_text(
        task.replace('user: "{{ input }}"', "file: prompt.txt")
    )
    assert (
        typed(
            "run", "questions.yaml", "--model", "scripted/echo", "--name", "made"
        ).code
        == 0
    )
    with (own_folder / name).open("wb") as file:
        file.truncate(1 << 30)  # of nothing: it takes no place on the disk
    done = typed(*command)
    assert (
        done.code == 2
        and (f"{name}" in done.err or "run 'made'" in done.err)
        and "MiB" in done.err
    ), done.text


def test_each_is_bounded(own_folder: Path) -> None:
    write_questions(own_folder, 1)
    task = own_folder / "questions.yaml"
    lists = ", ".join(f"k{place}: [{', '.join('0123456789')}]" for place in range(9))
    task.write_text(
        task.read_text().replace(
            "dataset: questions.jsonl",
            f"dataset: {{path: questions.jsonl, each: {{{lists}}}}}",
        )
    )
    done = typed("tasks", "check", "questions.yaml")
    assert done.code == 2 and "more than 20,000 combinations" in done.text, done.text
