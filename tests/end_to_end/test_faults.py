"""Whatever a server does wrong is named, retried or not as it should be, and never scored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.statistics import wilson
from support.command import record, records, write_questions
from support.openai_faults import Faults
from support.openai_server import serving
from support.typed import typed

# Per kind of fault: what the record calls it where it lasts, and how often a request is sent at the
# most then.
LASTING = {
    "429": ("rate limited", 4),
    "429-retry-after": ("rate limited", 4),
    "500": ("server error", 4),
    "reset": ("connection failed", 4),
    "truncated": ("bad reply", 3),
    "content-type": ("bad reply", 3),
    "empty": ("empty reply", 2),
    "hang": ("timed out", 4),
    "401": ("authentication failed", 1),
    "400": ("request rejected", 1),
}
HEALTHY = "good"
PASSING = "passing"
RUN = ("run", "questions.yaml", "--model", "openai/test", "-M")
ARGUMENTS = ["-M", "timeout=2", "-M", "deadline=90", "-M", "max_attempts=4"]


def plan(number: int) -> tuple[str, str]:
    """What happens to question `number`: (lasting or passing or good, kind of fault)."""
    kinds = list(LASTING)
    kind = kinds[number % len(kinds)]
    how = [HEALTHY, PASSING, "lasting"][number // len(kinds) % 3]
    if how == PASSING and LASTING[kind][1] == 1:
        how = HEALTHY  # a fault that is not retried cannot pass
    return how, kind


def test_each_fault_is_named_and_only_the_failed_are_asked_again(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 30)
    ill = True

    def script(body: Mapping[str, Any], before: int) -> str | None:
        if "messages" not in body:
            return None  # the check of what the server can do, before anything is asked
        number = int(body["messages"][-1]["content"].split()[1].rstrip("?"))
        how, kind = plan(number)
        return (
            kind
            if ill and (how == "lasting" or (how == PASSING and before == 0))
            else None
        )

    run = tmp_path / "runs" / "ill"
    with serving(
        answer=lambda prompt: "7", faults=Faults(script=script, retry_after=0.3)
    ) as server:
        command = [*RUN, f"base_url={server.url}", *ARGUMENTS]
        first = typed(*command, "--name", "ill", folder=tmp_path)
        assert first.code == 1, first.text
        assert "9 answers are missing: " in first.err
        assert "1 reply was no answer (1 empty) and counts as wrong." in first.err
        assert "Traceback" not in first.text
        rows = records(run)
        for number, row in enumerate(rows):
            how, kind = plan(number)
            if how == "lasting" and kind == "empty":
                # Sent again once; then it is what the model said, and wrong.
                assert (
                    row["outcome"] == "empty"
                    and row["scores"]["exact-match"]["value"] == 0.0
                )
            elif how == "lasting":
                words, attempts = LASTING[kind]
                assert row["failure"]["kind"] == words, (kind, row)
                assert row["failure"]["attempts"] == attempts, (kind, row["failure"])
                assert not row["scores"]
                assert "answer" not in row
            else:
                assert row["answer"] == "7"
                assert "exact-match" in row["scores"]
        result = record(run)["tasks"][0]
        assert (result["n_samples"], result["n_missing"]) == (30, 9)
        missing = Counter(
            words for words, _ in LASTING.values() if words != "empty reply"
        )
        assert result["failures"] == dict(missing)
        accuracy = result["metrics"][0]
        assert (accuracy["n"], accuracy["n_missing"]) == (21, 9)
        right = sum(
            row["scores"]["exact-match"]["value"] for row in rows if row["scores"]
        )
        assert accuracy["bounds"] == pytest.approx(
            [wilson(right, 30)[0], wilson(right + 9, 30)[1]]
        )

        ill = False
        before = Counter(server.completed)
        second = typed(*command, "--name", "ill", "--resend-empty", folder=tmp_path)
        assert second.code == 0, second.text
        newly = server.completed - before
        assert sum(newly.values()) == 10
        asked_again = {json.dumps(entry["body"]) for entry in (server.log or [])[-10:]}
        assert len(asked_again) == 10
        usage = record(run)["usage"]
        assert (usage["asked"], usage["stored"]) == (10, 20)


def test_a_wrong_key_stops_early_and_shows_no_key(tmp_path: Path) -> None:
    write_questions(tmp_path, 300)
    secret = "sk-very-secret-0123456789abcdef"
    with serving(key="another") as server:
        command = [*RUN, f"base_url={server.url}", "--name", "locked"]
        done = typed(*command, folder=tmp_path, extra={"OPENAI_API_KEY": secret})
        assert done.code == 1, done.text
        assert sum(server.received.values()) < 300, (
            "every sample was sent although the key is refused"
        )
    assert secret not in done.text
    for file in (tmp_path / "runs" / "locked").iterdir():
        assert secret not in file.read_text(encoding="utf-8")
    assert record(tmp_path / "runs" / "locked")["tasks"][0]["failures"] == {
        "authentication failed": 300
    }


def test_nobody_is_listening(tmp_path: Path) -> None:
    write_questions(tmp_path, 50)
    done = typed(
        *RUN,
        "base_url=http://127.0.0.1:9/v1",
        "-M",
        "max_attempts=2",
        "--name",
        "nobody",
        folder=tmp_path,
    )
    assert done.code == 1, done.text
    failures = record(tmp_path / "runs" / "nobody")["tasks"][0]["failures"]
    assert failures == {"connection failed": 50}
