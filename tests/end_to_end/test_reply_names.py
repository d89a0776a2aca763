"""What a reply says of its model: another model's answers are not scored under the name that was
asked, and an alias is recorded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import WrongModel
from evalwright.core.responses import Response
from evalwright.engine.name_guard import NameGuard
from evalwright.models.reply_names import NameRule, relation, rule_for
from support import openai_stream
from support.command import Done, record, records, stored_requests, write_questions
from support.openai_server import serving
from support.typed import typed

Edit = Callable[[dict[str, Any], Mapping[str, Any]], dict[str, Any]]


def named(*names: str | None, after: int = 0) -> Edit:
    """Replies give the first name, and from number `after` on the second; None leaves the field
    out.
    """
    count = 0

    def edit(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        nonlocal count
        name = names[-1] if count >= after else names[0]
        count += 1
        reply.pop("model", None)
        return reply if name is None else {**reply, "model": name}

    return edit


def run(
    folder: Path, model: str, *arguments: str, name: str = "r", quiet: bool = True
) -> Done:
    words = [
        "run",
        "questions.yaml",
        "--model",
        model,
        "--name",
        name,
        *(["--quiet"] if quiet else []),
    ]
    return typed(*words, *arguments, folder=folder, extra={"EVALWRIGHT_HOME": "home"})


def names_of(folder: Path, name: str = "r") -> list[tuple[str, str, int, int]]:
    """(name, relation, responses, refused) of the model under test."""
    rows = record(folder / "runs" / name)["reply_names"]["target"]
    return [
        (row["name"], row["relation"], row.get("responses", 0), row.get("refused", 0))
        for row in rows
    ]


def answered_models(folder: Path, name: str = "r") -> Counter[str]:
    """By which name each scored answer was given."""
    rows = records(folder / "runs" / name)
    return Counter(
        row["responses"][0].get("model", "")
        for row in rows
        if row["outcome"] == "answered"
    )


def test_a_replica_that_answers_as_another_model_answers_nothing(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 100)
    with serving() as right, serving(edit=named("evil-7b")) as wrong:
        done = run(
            tmp_path,
            "openai/good-7b",
            "-M",
            f"replicas={right.url},{wrong.url}",
            quiet=False,
        )
    assert done.code == 0, done.text
    assert answered_models(tmp_path) == {"good-7b": 100}
    assert len(stored_requests(tmp_path / "home")) == 100
    rows = record(tmp_path / "runs" / "r")["reply_names"]["target"]
    (refused,) = [row for row in rows if row["name"] == "evil-7b"]
    assert refused["replica"] == wrong.url and refused["relation"] == "other"
    assert refused["refused"] >= 1 and "responses" not in refused
    assert wrong.url in done.err and "'good-7b'" in done.err and "'evil-7b'" in done.err
    shown = typed("runs", "show", "r", folder=tmp_path)
    assert "Answered as" in shown.out and "not used: evil-7b" in shown.out


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("-M", "stream=true"),
        ("-M", "interface=completions"),
        ("-M", "interface=responses"),
    ],
)
def test_a_lone_endpoint_that_answers_as_another_model_is_not_scored(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    write_questions(tmp_path, 400)
    with serving(edit=named("evil-7b")) as server:
        done = run(tmp_path, f"openai/{server.url}#good-7b", *more)
        sent = server.received.total()
    assert done.code == 1, done.text
    assert answered_models(tmp_path) == {} and not stored_requests(tmp_path / "home")
    assert sent < 150, "what is never used is not paid for again and again"
    row = records(tmp_path / "runs" / "r")[0]
    assert row["failure"]["kind"] == "wrong model"
    for words in (
        server.url,
        "'good-7b'",
        "'evil-7b'",
        f"openai/{server.url}#evil-7b",
        "-M answers_as=evil-7b",
    ):
        assert words in row["failure"]["message"]


def renaming(*names: str | None) -> Callable[[pytest.MonkeyPatch], None]:
    """Streams whose first chunks give these names, and whose other chunks the last of them."""

    def install(patch: pytest.MonkeyPatch) -> None:
        original = openai_stream.chunks

        def chunks(
            reply: Mapping[str, Any], body: Mapping[str, Any]
        ) -> list[dict[str, Any]]:
            pieces = original(reply, body)
            for number, piece in enumerate(pieces):
                name = names[min(number, len(names) - 1)]
                piece.pop("model")
                if name is not None:
                    piece["model"] = name
            return pieces

        patch.setattr(openai_stream, "chunks", chunks)

    return install


@pytest.mark.parametrize("interface", ["chat", "completions"])
@pytest.mark.parametrize(
    ("names", "answered"),
    [
        (("evil-7b", "good-7b"), False),
        (("good-7b", "evil-7b", "good-7b"), False),
        (("", "evil-7b", ""), False),
        (("evil-7b", None), False),
        (("", "good-7b"), True),
        ((None, "good-7b"), True),
        (("default", "good-7b"), True),
        (("good-7b", "good-7b-2026-01-01"), True),
        (("good-7b", None), True),
    ],
)
def test_every_name_of_a_stream_counts(
    names: tuple[str | None, ...],
    answered: bool,
    interface: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_questions(tmp_path, 3)
    renaming(*names)(monkeypatch)
    with serving() as server:
        more = (
            "-M",
            "stream=true",
            "-M",
            f"interface={interface}",
            "-M",
            "max_attempts=1",
        )
        done = run(tmp_path, f"openai/{server.url}#good-7b", *more, quiet=False)
    assert done.code == (0 if answered else 1), done.text
    assert answered_models(tmp_path).total() == (3 if answered else 0)
    assert len(stored_requests(tmp_path / "home")) == (3 if answered else 0)
    assert ("evil-7b" in done.err) is not answered


def test_two_other_names_in_one_stream_are_refused_where_the_server_resolves_names() -> (
    None
):
    """At a provider's own hosts the first other name is accepted; a reply that gives it beside a
    second one is not.
    """
    guard = NameGuard(
        "openai/good",
        {"e": NameRule("good", "there", "first")},
        models_differ=False,
        say=lambda _: None,
    )
    with pytest.raises(WrongModel, match="also names 'good'"):
        guard.accept("e", Response("x", model="good", also_named=("evil",)))
    with pytest.raises(WrongModel, match="also names"):
        guard.accept("e", Response("x", model="evil", also_named=("worse",)))
    guard.accept(
        "e", Response("x", model="good-2026-01-01", also_named=("good", "default"))
    )
    router = NameGuard(
        "openai/auto",
        {"e": NameRule("auto", "there", "nothing")},
        models_differ=False,
        say=lambda _: None,
    )
    router.accept("e", Response("x", model="good", also_named=("evil",)))
    accepting = NameRule("good", "there", "asked", ("evil",))
    NameGuard(
        "openai/good", {"e": accepting}, models_differ=False, say=lambda _: None
    ).accept("e", Response("x", model="good", also_named=("evil",)))


def test_another_name_can_be_accepted(tmp_path: Path) -> None:
    write_questions(tmp_path, 20)
    with serving(edit=named("gpt-4o-2024-08-06")) as server:
        model = f"openai/{server.url}#team-chat"
        assert run(tmp_path, model).code == 1
        accepted = run(tmp_path, model, "-M", "answers_as=gpt-4o", name="accepted")
        assert accepted.code == 0, accepted.text
        assert names_of(tmp_path, "accepted") == [
            ("gpt-4o-2024-08-06", "accepted", 20, 0)
        ]
        assert record(tmp_path / "runs" / "accepted")["model"]["answers_as"] == [
            "gpt-4o"
        ]
        before = server.received.total()
        # The name is a permission, and no part of what answers: the stored responses are the
        # model's.
        whatever = run(tmp_path, model, "-M", "answers_as=any", name="whatever")
        assert whatever.code == 0 and server.received.total() == before


def test_another_name_in_mid_run_is_a_failure(tmp_path: Path) -> None:
    write_questions(tmp_path, 28)
    with serving(edit=named("good-7b", "evil-7b", after=20)) as server:
        done = run(tmp_path, f"openai/{server.url}#good-7b", "-M", "max_concurrency=1")
    assert done.code == 1, done.text
    assert answered_models(tmp_path) == {"good-7b": 20}
    assert {name: used for name, _, used, _ in names_of(tmp_path)} == {
        "good-7b": 20,
        "evil-7b": 0,
    }


def test_an_alias_is_recorded_and_said_once(tmp_path: Path) -> None:
    write_questions(tmp_path, 20)
    with serving(edit=named("gpt-4o-2024-08-06")) as server:
        quiet = run(tmp_path, f"openai/{server.url}#gpt-4o")
        loud = run(
            tmp_path,
            f"openai/{server.url}#gpt-4o",
            "-M",
            "seed=1",
            name="loud",
            quiet=False,
        )
    assert quiet.code == loud.code == 0
    assert "2024-08-06" not in quiet.err
    assert loud.err.count("stands for 'gpt-4o-2024-08-06'") == 1
    assert names_of(tmp_path) == [("gpt-4o-2024-08-06", "alias", 20, 0)]
    assert (
        "gpt-4o-2024-08-06 (20 replies)"
        in typed("runs", "show", "r", folder=tmp_path).out
    )


def test_an_alias_that_moves_is_recorded_and_said(tmp_path: Path) -> None:
    write_questions(tmp_path, 20)
    with serving(
        edit=named("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", after=10)
    ) as server:
        done = run(
            tmp_path,
            f"openai/{server.url}#gpt-4o",
            "-M",
            "max_concurrency=1",
            quiet=False,
        )
    assert done.code == 0, done.text
    assert names_of(tmp_path) == [
        ("gpt-4o-2024-08-06", "alias", 10, 0),
        ("gpt-4o-2024-11-20", "alias", 10, 0),
    ]
    assert (
        "changed in mid-run from 'gpt-4o-2024-08-06' to 'gpt-4o-2024-11-20'" in done.err
    )


def test_an_alias_that_moved_between_two_commands_is_said(tmp_path: Path) -> None:
    write_questions(tmp_path, 20)
    with serving(
        edit=named("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", after=10)
    ) as server:
        model = f"openai/{server.url}#gpt-4o"
        assert run(tmp_path, model, "--limit", "10", name="part").code == 0
        done = run(tmp_path, model, name="whole", quiet=False)
    assert done.code == 0 and "changed in mid-run" in done.err
    assert [row[:3] for row in names_of(tmp_path, "whole")] == [
        ("gpt-4o-2024-08-06", "alias", 10),
        ("gpt-4o-2024-11-20", "alias", 10),
    ]


@pytest.mark.parametrize("name", [None, "", "default"])
def test_a_reply_without_a_name_is_an_answer(tmp_path: Path, name: str | None) -> None:
    write_questions(tmp_path, 5)
    with serving(edit=named(name)) as server:
        done = run(tmp_path, f"openai/{server.url}#good-7b", quiet=False)
    assert done.code == 0, done.text
    assert names_of(tmp_path) == [(name or "", "unnamed", 5, 0)]


def test_a_server_that_tells_what_it_has_loaded(tmp_path: Path) -> None:
    """llama.cpp gives the name of its file, whatever is asked; another file in mid-run is
    another model.
    """
    write_questions(tmp_path, 40)
    with serving(
        edit=named("/models/tiny.Q4_K_M.gguf", "/models/big.Q8_0.gguf", after=20)
    ) as server:
        model = "llamacpp/whatever"
        place = f"base_url={server.url}"
        first = run(
            tmp_path, model, "-M", place, "--limit", "20", name="first", quiet=False
        )
        assert (
            first.code == 0
            and first.err.count("answers as '/models/tiny.Q4_K_M.gguf'") == 1
        )
        assert names_of(tmp_path, "first") == [
            ("/models/tiny.Q4_K_M.gguf", "other", 20, 0)
        ]
        second = run(tmp_path, model, "-M", place, name="second")
    assert second.code == 1
    assert answered_models(tmp_path, "second") == {"/models/tiny.Q4_K_M.gguf": 20}
    failed = next(
        row
        for row in records(tmp_path / "runs" / "second")
        if row["outcome"] == "failed"
    )
    assert (
        "the stored responses of this model were given by '/models/tiny.Q4_K_M.gguf'"
        in failed["failure"]["message"]
    )


def test_what_an_earlier_version_stored_of_another_model_is_not_used(
    tmp_path: Path,
) -> None:
    """`answers_as=any` stores what earlier versions stored of any server."""
    write_questions(tmp_path, 20)
    with serving(edit=named("evil-7b", "good-7b", after=10)) as server:
        model = f"openai/{server.url}#good-7b"
        one_by_one = ("-M", "max_concurrency=1")
        assert (
            run(tmp_path, model, *one_by_one, "-M", "answers_as=any", name="mixed").code
            == 0
        )
        assert answered_models(tmp_path, "mixed") == {"evil-7b": 10, "good-7b": 10}
        before = server.received.total()
        done = run(tmp_path, model, name="clean", quiet=False)
        assert done.code == 0, done.text
        assert server.received.total() == before + 10
        assert (
            "stored responses under this name were given by" in done.err
            and "'evil-7b'" in done.err
        )
        assert answered_models(tmp_path, "clean") == {"good-7b": 20}
        assert run(tmp_path, model, name="again").code == 0
        assert server.received.total() == before + 10, (
            "the right answers took the place of the wrong ones"
        )


def test_replicas_of_which_nothing_tells_the_right_one_answer_nothing(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 60)
    with (
        serving(edit=named("a.gguf"), latency=0.05) as one,
        serving(edit=named("b.gguf"), latency=0.05) as other,
    ):
        places = f"replicas={one.url},{other.url}"
        done = run(tmp_path, "llamacpp/whatever", "-M", places)
        assert done.code == 1, done.text
        rows = records(tmp_path / "runs" / "r")
        messages = [
            row["failure"]["message"] for row in rows if row["outcome"] == "failed"
        ]
        assert messages and any(
            "neither is the name that was asked" in message for message in messages
        )
        named_one = run(
            tmp_path,
            "llamacpp/whatever",
            "-M",
            places,
            "-M",
            "answers_as=a.gguf",
            name="named",
        )
        assert named_one.code == 0, named_one.text
        assert answered_models(tmp_path, "named") == {"a.gguf": 60}
        differing = run(
            tmp_path,
            "llamacpp/whatever",
            "-M",
            places,
            "-M",
            "replicas_differ=true",
            name="both",
        )
        assert differing.code == 0 and answered_models(tmp_path, "both").total() == 60


def test_shards_add_up_what_replies_were_named(tmp_path: Path) -> None:
    write_questions(tmp_path, 20)
    with serving(edit=named("gpt-4o-2024-08-06")) as server:
        for shard in ("1/2", "2/2"):
            assert (
                run(tmp_path, f"openai/{server.url}#gpt-4o", "--shard", shard).code == 0
            )
    merged = typed(
        "runs", "merge", "r", folder=tmp_path, extra={"EVALWRIGHT_HOME": "home"}
    )
    assert merged.code == 0, merged.text
    assert names_of(tmp_path) == [("gpt-4o-2024-08-06", "alias", 20, 0)]


def test_a_judge_that_answers_as_another_model_judges_nothing(tmp_path: Path) -> None:
    write_questions(tmp_path, 5)
    task = tmp_path / "questions.yaml"
    judged = "scorers: [judge-correct]"
    task.write_text(
        task.read_text(encoding="utf-8").replace("scorers: [exact-match]", judged),
        encoding="utf-8",
    )
    with serving() as right, serving(edit=named("evil-7b")) as wrong:
        done = run(
            tmp_path,
            f"openai/{right.url}#good-7b",
            "--role",
            f"judge=openai/{wrong.url}#judge-70b",
        )
    assert done.code == 1, done.text
    rows = record(tmp_path / "runs" / "r")["reply_names"]
    assert rows["target"][0]["responses"] == 5
    assert rows["judge"][0]["name"] == "evil-7b" and "responses" not in rows["judge"][0]


def test_a_list_of_models_to_fall_back_to_is_a_router(tmp_path: Path) -> None:
    write_questions(tmp_path, 20)
    with serving(
        edit=named("openai/gpt-4o", "meta/llama-3", after=10), extra=("models",)
    ) as server:
        body = json.dumps({"models": ["openai/gpt-4o", "meta/llama-3"]})
        done = run(
            tmp_path, f"openai/{server.url}#openai/gpt-4o", "-M", f"extra_body={body}"
        )
    assert done.code == 0, done.text
    assert {row[0]: row[2] for row in names_of(tmp_path)} == {
        "openai/gpt-4o": 10,
        "meta/llama-3": 10,
    }


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [
        ("gpt-4o", "GPT-4o", "same"),
        ("openai/gpt-4o", "gpt-4o", "same"),
        ("qwen", "/models/qwen", "same"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro", "same"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4-20250514", "same"),
        ("gpt-4o", "gpt-4o-2024-08-06", "alias"),
        ("gpt-4", "gpt-4-1106-preview", "alias"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", "alias"),
        ("claude-sonnet-4-0", "claude-sonnet-4-20250514", "alias"),
        ("gemini-2.0-flash", "gemini-2.0-flash-001", "alias"),
        ("gemini-flash-latest", "gemini-2.5-flash-preview-09-2025", "alias"),
        ("command-a", "command-a-03-2025", "alias"),
        ("openai/gpt-oss-20b:groq", "openai/gpt-oss-20b", "alias"),
        ("qwen2.5-7b-instruct", "/m/Qwen2.5-7B-Instruct-Q4_K_M.gguf", "alias"),
        ("meta/llama-3", "unsloth/llama-3", "alias"),
        ("gpt-4o", "gpt-4o-mini", "other"),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", "other"),
        ("gpt-4", "gpt-4.1", "other"),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", "other"),
        ("llama-3.1-8b", "llama-3.1-70b", "other"),
        ("llama-3.1-8b", "Llama-3.1-8B-Instruct", "other"),
        ("qwen3:4b", "qwen3:8b", "other"),
        ("gemini-flash-latest", "gemini-2.5-flash-lite", "other"),
        ("gpt-4o", "", "unnamed"),
        ("gpt-4o", "unknown", "unnamed"),
    ],
)
def test_what_a_name_is_to_another(asked: str, answered: str, expected: str) -> None:
    assert relation(asked, answered) == expected


def test_a_placeholder_and_a_router_claim_nothing() -> None:
    where = "http://host/v1"
    assert rule_for("model", where, resolves=False).check == "first"
    assert rule_for("openrouter/auto", where, resolves=False).check == "nothing"
    assert rule_for("gpt-4o", where, resolves=False).check == "asked"
