"""Whose fault decides what counts: what the model did is scored, under its own label; what it
never did is missing.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.statistics import wilson
from support.batch_server import serving_batches
from support.command import Done, record, records, write_questions
from support.openai_faults import Faults
from support.openai_server import Edit, serving
from support.typed import typed

TASK = 'sample: {id: "{{ id }}", input: "{{ question }}", target: "{{ answer }}"}\n'


@pytest.fixture(autouse=True)
def _folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "EVALWRIGHT_TASKS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def number(body: Mapping[str, Any]) -> int:
    """Which of the questions a request asks, in any format; -1 for what is none."""
    words = json.dumps(body).partition("Question ")[2]
    return int(words[:5]) if words else -1


def chat(content: str | None, finish: str, **message: Any) -> Edit:
    """An edit that gives every chat completion this message."""

    def edit(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        choice = reply["choices"][0]
        choice["message"] |= {"content": content, **message}
        choice["finish_reason"] = finish
        return reply

    return edit


def with_key(folder: Path, key: str) -> None:
    """Add a key to the task file in the folder."""
    with (folder / "questions.yaml").open("a", encoding="utf-8") as file:
        file.write(f"{key}\n")


def ran(url: str, name: str = "r", *more: str, model: str = "openai") -> Done:
    return typed(
        "run", "questions.yaml", "--model", f"{model}/{url}#m", "--name", name, *more
    )


def outcomes(name: str = "r") -> dict[str, int]:
    """What the records say, which must be what `run.json` says."""
    counted = dict(Counter(row["outcome"] for row in records(Path("runs") / name)))
    assert record(Path("runs") / name)["tasks"][0]["outcomes"] == counted
    return counted


@pytest.mark.parametrize("finish", ["error", "abort", "network_error"])
def test_what_the_provider_broke_off_is_no_answer(finish: str, tmp_path: Path) -> None:
    """It is the provider's failure, whatever text is there, and the next command sends it again."""
    write_questions(tmp_path, 4)

    def broken(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        return (
            chat("The answer is", finish)(reply, body) if number(body) == 1 else reply
        )

    with serving(edit=broken) as server:
        done = ran(server.url, "r", "-M", "max_attempts=1")
        assert done.code == 1 and outcomes() == {"answered": 3, "failed": 1}
        assert record(Path("runs/r"))["tasks"][0]["failures"] == {"server error": 1}
        assert (
            "1 sent, 3 from the store"
            in ran(server.url, "r", "-M", "max_attempts=1").out
        )


# -- the example: 40 cut, 20 filtered by HTTP 400, 40 answers
# ---------------------------------------------------------------


def forty(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    place = number(body)
    if 0 <= place < 40:
        return chat("", "length", reasoning_content="Let me think")(reply, body)
    return chat(f"{place}" if place % 3 else "no", "stop")(reply, body)


def stopped(body: Mapping[str, Any], before: int) -> str | None:
    return "filtered" if 40 <= number(body) < 60 else None


def test_what_the_model_did_is_wrong_and_what_it_never_got_is_missing(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 100)
    with serving(edit=forty, faults=Faults(script=stopped)) as server:
        done = ran(server.url)
        assert done.code == 1, done.text
        assert outcomes() == {"answered": 40, "cut": 40, "failed": 20}
        (task,) = record(Path("runs/r"))["tasks"]
        (accuracy,) = task["metrics"]
        right = sum(place % 3 > 0 for place in range(60, 100))
        assert accuracy["value"] == right / 80 and (
            accuracy["n"],
            accuracy["n_missing"],
        ) == (80, 20)
        assert accuracy["bounds"] == pytest.approx(
            [wilson(right, 100)[0], wilson(right + 20, 100)[1]]
        )
        assert task["n_missing"] == 20 and task["failures"] == {"filtered": 20}
        *_, faults, last = done.err.strip().splitlines()
        assert faults.startswith(
            "40 replies were no answer (40 cut before any answer) and count as wrong."
        )
        assert "-M max_tokens=N" in faults
        assert last.startswith(
            "20 answers are missing: stopped by the filter on prompts."
        )
        assert "40 cut before any answer" in " ".join(done.out.split())
        for row in records(Path("runs/r")):
            assert ("scores" in row and bool(row["scores"])) == (
                row["outcome"] != "failed"
            )
            assert ("answer" in row) == (row["outcome"] != "failed")
            if row["outcome"] == "cut":
                assert (
                    row["scores"]["exact-match"]["value"] == 0
                    and row["scores"]["exact-match"]["label"] == "cut"
                )

        # What was paid for is kept and never sent again; a request that the filter refused was
        # never answered.
        again = ran(server.url)
        assert "20 sent, 80 from the store" in again.out
        assert outcomes() == {"answered": 40, "cut": 40, "failed": 20}

        said = "40 cut before any answer"
        files = [f"board.{end}" for end in ("md", "html", "csv", "json")]
        flags = ("--markdown", "--html", "--csv", "--json-file")
        board = typed(
            "leaderboard",
            "runs/r",
            *(word for pair in zip(flags, files, strict=True) for word in pair),
        )
        md, html, table, data = (
            Path(file).read_text(encoding="utf-8") for file in files
        )
        assert said in " ".join(typed("runs", "show", "r").out.split())
        for text in (board.out, md):
            assert "Cut (the model" in " ".join(text.split()), "a column of its own"
        assert "Cut" in html
        assert "cut" in table
        assert json.loads(data)["models"][0]["outcomes"] == {
            "answered": 40,
            "cut": 40,
            "failed": 20,
        }
        shutil.copytree("runs/r", "runs/again")
        gate = typed(
            "compare",
            "runs/r",
            "runs/again",
            "--fail-if",
            "n_missing is above 0",
            "--junit",
            "gate.xml",
        )
        assert gate.code == 1

        scored = typed("score", "runs/r", "--scorer", "exact-match")
        assert scored.code == 1 and outcomes("r.rescored") == outcomes()
        assert "20 answers are missing" in scored.err


def test_the_models_own_faults_alone_are_no_error(tmp_path: Path) -> None:
    write_questions(tmp_path, 4)
    with serving(edit=chat("", "length")) as server:
        done = ran(server.url)
    assert done.code == 0 and outcomes() == {"cut": 4}
    assert (
        "4 replies were no answer (4 cut before any answer) and count as wrong."
        in done.err
    )
    assert "missing" not in done.err
    (task,) = record(Path("runs/r"))["tasks"]
    assert (
        task["n_missing"],
        task["metrics"][0]["value"],
        task["metrics"][0]["n"],
    ) == (0, 0.0, 4)


def test_a_task_may_leave_them_without_a_score(tmp_path: Path) -> None:
    write_questions(tmp_path, 4)
    with_key(tmp_path, "no_answer: unscored")
    with serving(
        edit=lambda reply, body: (
            chat("", "length")(reply, body) if number(body) == 1 else reply
        )
    ) as server:
        done = ran(server.url)
    (task,) = record(Path("runs/r"))["tasks"]
    assert done.code == 0 and (task["n_missing"], task["metrics"][0]["n"]) == (0, 3)
    assert (
        "1 reply was no answer (1 cut before any answer) and has no score." in done.err
    )


def test_a_task_may_count_them_as_empty_answers(tmp_path: Path) -> None:
    write_questions(tmp_path, 100)
    with serving(edit=forty, faults=Faults(script=stopped)) as server:
        assert ran(server.url).code == 1
        done = ran(server.url, "all", "-T", 'score_as_empty=["cut", "filtered"]')
        assert done.code == 0, done.text
    assert (
        "60 replies were no answer" in done.err
        and "count as an empty answer" in done.err
    )
    assert outcomes("all") == {"answered": 40, "cut": 40, "filtered": 20}
    (task,) = record(Path("runs/all"))["tasks"]
    assert task["n_missing"] == 0 and task["metrics"][0]["value"] == 26 / 100
    assert typed("score", "runs/all").code == 0 and outcomes(
        "all.rescored"
    ) == outcomes("all")
    wrong = typed(
        "run",
        "questions.yaml",
        "--model",
        "scripted/echo",
        "-T",
        'score_as_empty=["failed"]',
    )
    assert wrong.code == 2 and "score_as_empty" in wrong.err


def test_a_task_in_python_may_too(tmp_path: Path) -> None:
    write_questions(tmp_path, 3)
    (tmp_path / "mine.py").write_text(
        "from evalwright import task\n"
        '@task("mine")\n'
        "def mine():\n"
        '    return {"dataset": "questions.jsonl", "scorers": ["exact-match"], "score_as_empty": ["cut"],\n'
        '            "sample": {"input": "{{ question }}", "target": "{{ answer }}"}}\n'
    )
    with serving(edit=chat("", "length")) as server:
        done = typed(
            "run",
            "mine",
            "--plugin",
            "mine.py",
            "--model",
            f"openai/{server.url}#m",
            "--name",
            "r",
        )
    assert done.code == 0 and outcomes() == {"cut": 3}


# -- every wire format
# ----------------------------------------------------------------------------------------------------


def setting(*changes: tuple[str, Any]) -> Edit:
    """An edit that puts values at dotted places."""

    def edit(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        for place, value in changes:
            *steps, last = (
                int(step) if step.isdigit() else step for step in place.split(".")
            )
            at: Any = reply
            for step in steps:
                at = at[step]
            at[last] = value
        return reply

    return edit


VERTEX = "/v1/projects/p/locations/global"
GEMINI_FILTERS = ("SAFETY", "RECITATION", "LANGUAGE", "PROHIBITED_CONTENT", "SPII")
GEMINI_BROKEN_OFF = ("OTHER", "MALFORMED_RESPONSE")
GEMINI_CALLS = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")
"""Behind a text, the text is the answer; without one, the reply is a call of a tool that was not
offered.
"""


@pytest.mark.parametrize(
    ("model", "path", "edit", "outcome"),
    [
        ("openai", "/v1", chat("", "length"), "cut"),
        ("openai", "/v1", chat(" \n", "length"), "cut"),
        ("openai", "/v1", chat("<think>So", "length"), "cut"),
        ("openai", "/v1", chat("<think>So", "stop"), "cut"),
        ("openai", "/v1", chat(None, "stop", reasoning="So the answer"), "cut"),
        ("openai", "/v1", chat("", "MAX_TOKENS"), "cut"),
        ("openai", "/v1", chat("\u200b", "length"), "cut"),
        ("openai", "/v1", chat(None, "content_filter", refusal="I will not."), "filtered"),
        ("openai", "/v1", chat("7 is", "length"), "answered"),
        ("openai", "/v1", chat("I cannot help with that.", "stop"), "answered"),
        ("openai", "/v1", chat("7", "content_filter"), "filtered"),
        ("openai", "/v1", chat(None, "content_filter"), "filtered"),
        ("openai", "/v1", chat("", "SAFETY"), "filtered"),
        ("openai", "/v1", chat(None, "stop", refusal="I will not."), "refused"),
        ("openai", "/v1", chat([{"type": "refusal", "refusal": "I will not."}], "stop"), "refused"),  # type: ignore[arg-type]
        ("openai", "/v1", chat("", "stop"), "empty"),
        ("openai", "/v1", chat(None, "tool_calls", tool_calls=[{}]), "tool_call"),
        ("openai", "/v1", chat("", "error"), "failed"),
        ("anthropic", "/v1", setting(("content", []), ("stop_reason", "max_tokens")), "cut"),
        ("anthropic", "/v1", setting(("content.0", {"type": "thinking", "thinking": "So"}), ("stop_reason", "max_tokens")), "cut"),
        ("anthropic", "/v1", setting(("content", []), ("stop_reason", "refusal")), "filtered"),
        ("anthropic", "/v1", setting(("stop_reason", "refusal")), "filtered"),
        ("anthropic", "/v1", setting(("stop_reason", "max_tokens")), "answered"),
        *(("gemini", "/v1beta", setting(("candidates.0", {"finishReason": why})), "filtered") for why in GEMINI_FILTERS),
        *(("gemini", "/v1beta", setting(("candidates.0.finishReason", why)), "filtered") for why in GEMINI_FILTERS),
        *(("gemini", "/v1beta", setting(("candidates.0.finishReason", why)), "failed") for why in GEMINI_BROKEN_OFF),
        *(("gemini", "/v1beta", setting(("candidates.0.finishReason", why)), "answered") for why in GEMINI_CALLS),
        ("gemini", "/v1beta", setting(("candidates.0", {"finishReason": "MAX_TOKENS"})), "cut"),
        ("gemini", "/v1beta", setting(("candidates", []), ("promptFeedback", {"blockReason": "SAFETY"})), "filtered prompt"),
        ("gemini", "/v1beta", setting(("candidates.0", {"finishReason": "MALFORMED_FUNCTION_CALL"})), "tool_call"),
        ("vertex", VERTEX, setting(("candidates.0", {"finishReason": "SAFETY"})), "filtered"),
        ("vertex", VERTEX, setting(("candidates.0", {"finishReason": "MAX_TOKENS"})), "cut"),
        ("bedrock", "", setting(("stopReason", "guardrail_intervened")), "filtered"),
        ("bedrock", "", setting(("stopReason", "content_filtered")), "filtered"),
        ("bedrock", "", setting(("stopReason", "malformed_model_output")), "failed"),
        ("bedrock", "", setting(("stopReason", "model_context_window_exceeded")), "answered"),
        ("anthropic", "/v1", setting(("stop_reason", "pause_turn")), "failed"),
        ("cohere", "/v2", setting(("finish_reason", "ERROR_LIMIT")), "answered"),
        ("bedrock", "", setting(("output.message.content", []), ("stopReason", "max_tokens")), "cut"),
        ("cohere", "/v2", setting(("message.content", []), ("finish_reason", "MAX_TOKENS")), "cut"),
        ("cohere", "/v2", setting(("finish_reason", "ERROR_TOXIC")), "filtered"),
    ],
)  # fmt: skip
def test_every_format_says_it(
    model: str,
    path: str,
    edit: Edit,
    outcome: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "AWS_REGION": "eu-west-1",
        "AWS_BEARER_TOKEN_BEDROCK": "b",
        "VERTEX_ACCESS_TOKEN": "v",
    }.items():
        monkeypatch.setenv(name, value)
    write_questions(tmp_path, 1)
    with serving(lambda prompt: "7", edit=edit) as server:
        done = ran(f"{server.root}{path}", "r", "-M", "deadline=5", model=model)
        assert outcomes() == {
            "failed" if outcome == "filtered prompt" else outcome: 1
        }, done.text
        (row,) = records(Path("runs/r"))
        is_missing = outcome in ("failed", "filtered prompt")
        assert done.code == is_missing
        assert ("failure" in row) == is_missing and bool(row["scores"]) != is_missing
        if not is_missing:
            assert (
                row["responses"]
                and "0 sent" in ran(f"{server.root}{path}", model=model).out
            )


OF_THE_REPLY = ("azure's completion", "anthropic")
BLOCKED: dict[str, tuple[int, Any]] = {
    "azure": (400, {"error": {"code": "BadRequest", "message": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
    "azure's completion": (400, {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}),
    "openrouter": (403, {"error": {"code": 403, "message": "x", "metadata": {"error_type": "content_policy_violation"}}}),
    "alibaba": (400, {"error": {"code": "data_inspection_failed", "message": "x"}}),
    "deepseek": (400, {"error": {"code": "invalid_request_error", "message": "Content Exists Risk"}}),
    "xai": (403, {"code": "No permission", "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}),
    "anthropic": (400, {"error": {"type": "invalid_request_error", "message": "Output blocked by content filtering policy"}}),
    "in a 200": (200, {"error": {"code": "content_filter", "message": "x"}}),
}  # fmt: skip


@pytest.mark.parametrize("who", BLOCKED)
def test_a_filter_that_answers_with_an_error(who: str, tmp_path: Path) -> None:
    """Where it stopped the prompt, the answers are missing and asked again; a reply that it
    stopped is what the model did.
    """
    write_questions(tmp_path, 12)
    with serving(
        faults=Faults(script=lambda body, before: "filtered", filtered=BLOCKED[who])
    ) as server:
        done = ran(server.url)
        # A refused key would have ended the run after ten; each was sent once.
        outcome = "filtered" if who in OF_THE_REPLY else "failed"
        assert outcomes() == {outcome: 12} and done.code == (who not in OF_THE_REPLY)
        assert set(server.received.values()) == {1}
        assert f"{0 if who in OF_THE_REPLY else 12} sent" in ran(server.url).out
    if who in OF_THE_REPLY:
        assert all(
            row["scores"]["exact-match"]["label"] == "filtered"
            for row in records(Path("runs/r"))
        )
        return
    (first, *_) = records(Path("runs/r"))
    assert (
        first["failure"]["party"] == "provider"
        and first["failure"]["kind"] == "filtered"
    )
    assert not first["failure"]["retryable"]


@pytest.mark.parametrize(
    ("kind", "path", "edit", "fates"),
    [
        ("openai", "", chat("", "length"), "filtered"),
        (
            "anthropic",
            "",
            setting(("content", []), ("stop_reason", "max_tokens")),
            "filtered",
        ),
        ("gemini", "", setting(("candidates.0", {"finishReason": "MAX_TOKENS"})), "ok"),
    ],
)
def test_batches_say_it(
    kind: str, path: str, edit: Any, fates: str, tmp_path: Path
) -> None:
    write_questions(tmp_path, 4)
    seen: list[str] = []

    def fate(item: str, asked: int) -> str:
        seen.append(item)
        return fates if len(set(seen)) == 1 or item == seen[0] else "ok"

    with serving_batches(kind, seconds=0.0, fate=fate, edit=edit) as server:
        done = ran(server.url, "r", "--batch", "-M", "batch_poll=0.05", model=kind)
    # Anthropic's filter stops the reply, OpenAI's the prompt
    assert done.code == (kind == "openai")
    stopped = "failed" if kind == "openai" else "filtered"
    assert outcomes() == (
        {"cut": 3, stopped: 1} if fates == "filtered" else {"cut": 4}
    ), done.text


# -- who failed
# -----------------------------------------------------------------------------------------------------------

JUDGED = "scorers:\n  - {name: judged, use: judge-correct}\n"


@pytest.mark.parametrize(
    ("faults", "edit", "label", "words"),
    [
        (
            "400",
            None,
            "judge: request rejected",
            "The judge's provider does not accept the request",
        ),
        ("filtered", None, "judge: filtered", "The filter of the judge's provider"),
        (None, chat("", "length"), "judge: cut", "The judge reached its token limit"),
        (
            None,
            chat("7", "content_filter"),
            "judge: filtered",
            "The filter of the judge's provider",
        ),
        (
            None,
            chat(None, "stop", refusal="No."),
            "judge: refused",
            "The judge refused",
        ),
    ],
)
def test_a_judge_that_gives_no_answer_is_the_judges_failure(
    faults: str | None, edit: Edit | None, label: str, words: str, tmp_path: Path
) -> None:
    task = write_questions(tmp_path, 2)
    task.write_text(
        task.read_text().replace("scorers: [exact-match]\n", JUDGED), encoding="utf-8"
    )
    with serving(edit=edit, faults=Faults(script=lambda body, before: faults)) as judge:
        role = ("--role", f"judge=openai/{judge.url}#j")
        done = typed(
            "run", "questions.yaml", "--model", "scripted/echo", *role, "--name", "r"
        )
    assert done.code == 1
    assert outcomes() == {"answered": 2}
    (task_record,) = record(Path("runs/r"))["tasks"]
    assert task_record["failures"] == {label: 2} and task_record["n_missing"] == 2
    shown = " ".join(done.out.split())
    assert words in shown and "the model's arguments" not in shown
    (row, _) = records(Path("runs/r"))
    assert row["score_failures"]["judged"]["party"] == "judge" and "answer" in row


# -- records of earlier versions, and other programs
# -----------------------------------------------------------------------


def test_a_record_without_an_outcome_has_one_all_the_same(tmp_path: Path) -> None:
    write_questions(tmp_path, 4)
    with serving(edit=chat("", "length")) as server:
        ran(server.url)
    folder = Path("runs/r")
    rows = [
        json.loads(line)
        for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for row in rows:  # as they were written before: scored as wrong
        del row["outcome"]
        row["scores"] = {"exact-match": {"value": 0.0}}
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "samples.jsonl").write_text(text, encoding="utf-8")
    data = record(folder)
    from hashlib import sha256

    data["samples"]["sha256"] = sha256(text.encode()).hexdigest()
    del data["tasks"][0]["outcomes"]
    data["tasks"][0] |= {"n_missing": 0, "failures": {}}
    (folder / "run.json").write_text(json.dumps(data), encoding="utf-8")
    assert (
        typed("runs", "show", "r").code == 0
        and typed("leaderboard", "runs/r").code == 0
    )
    done = typed("score", "runs/r")
    assert done.code == 0 and outcomes("r.rescored") == {"cut": 4}
    assert record(Path("runs/r.rescored"))["tasks"][0]["n_missing"] == 0


def test_an_export_has_what_is_missing_among_what_failed(tmp_path: Path) -> None:
    write_questions(tmp_path, 100)
    with serving(edit=forty, faults=Faults(script=stopped)) as server:
        ran(server.url)
    done = typed("export", "lm-eval", "runs/r", "--out", "out")
    assert done.code in (0, 1), done.text
    (samples,) = Path("out").rglob("samples_*.jsonl")
    (failures,) = Path("out").rglob("failures_*.jsonl")
    assert len(samples.read_text().splitlines()) == 80
    kinds = Counter(
        json.loads(line)["failure"]["kind"]
        for line in failures.read_text().splitlines()
    )
    assert kinds == {"filtered": 20}


# -- several replies
# --------------------------------------------------------------------------------------------------------


def test_some_draws_without_an_answer_are_told(tmp_path: Path) -> None:
    write_questions(tmp_path, 5)
    task = Path("questions.yaml")
    text = task.read_text(encoding="utf-8").replace(
        "max_tokens: 20", "max_tokens: 20, draws: 2, temperature: 1"
    )
    task.write_text(text, encoding="utf-8")
    calls: Counter[int] = Counter()

    def edit(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        calls[number(body)] += 1
        return (
            chat("", "length")(reply, body)
            if calls[number(body)] == 1
            else chat("x", "stop")(reply, body)
        )

    with serving(edit=edit) as server:
        done = ran(server.url)
    assert done.code == 0 and outcomes() == {"answered": 5, "cut": 5}
    assert "5 replies were no answer" in done.err


def test_a_conversation_ends_where_there_is_nothing_to_go_on_from(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 3)
    task = Path("questions.yaml")
    text = task.read_text(encoding="utf-8").replace(
        'user: "{{ input }}"', 'user: ["{{ input }}", "Are you sure?"]'
    )
    task.write_text(text, encoding="utf-8")
    with serving(edit=chat("", "length")) as server:
        assert ran(server.url).code == 0
        assert sum(server.received.values()) == 3
    assert outcomes() == {"cut": 3}
