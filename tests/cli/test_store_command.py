"""`evalwright store` on a file and on a server: what it shows, checks, deletes and moves."""

from __future__ import annotations

import gzip
import json
import os
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from support.postgres import Server, missing
from support.stores import Statements
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")

_LONGEST = 100_000
ENDLESS = "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT responses.* FROM responses, n"


@pytest.fixture(autouse=True)
def filled(each_store: str, own_folder: Path) -> None:
    """A store with the responses of two models to five questions each."""
    (own_folder / "t.yaml").write_text(
        "task: t\ndataset: rows.jsonl\nprompt: {user: '{{ input }}'}\nanswer: {mode: generate}\nscorers: [exact-match]\n"
    )
    rows = [
        {
            "input": f"question {n} \ud55c\uad6d\uc5b4 " + "long " * 400 * (n == 4),
            "target": "4",
        }
        for n in range(5)
    ]
    (own_folder / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    for text in ("4", "5"):
        done = typed(
            "run",
            "t.yaml",
            "--model",
            "scripted/constant",
            "-M",
            f"text={text}",
            "--name",
            f"r{text}",
        )
        assert done.code == 0, done.text


def store(*arguments: str) -> str:
    done = typed("store", *arguments)
    assert done.code == 0, done.text
    return done.out


def info(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(store("info", "--json", *arguments))
    return found


def test_what_is_there_is_shown(each_store: str) -> None:
    data = info()
    assert data["kind"] == {"sqlite": "SQLite", "postgres": "PostgreSQL"}[each_store]
    assert (data["responses"], data["sendings"], data["claims"], data["in_use_by"]) == (
        10,
        10,
        0,
        [],
    )
    assert [model["responses"] for model in data["models"]] == [5, 5]
    assert all(
        model["model"].startswith("scripted/constant") for model in data["models"]
    )
    assert data["bytes"] > 10_000 and data["warning"] == ""
    text = store("info")
    assert (
        "10 responses" in text and "scripted/constant" in text and data["store"] in text
    )


def test_a_damaged_response_is_found_and_deleted(
    own_folder: Path, behind: Statements
) -> None:
    assert "10 responses read, 0 damaged" in store("verify")
    one = "(SELECT key FROM responses ORDER BY key LIMIT 1)"
    behind(
        own_folder / "home",
        f"UPDATE responses SET checksum = checksum + 1 WHERE key = {one}",
    )
    done = typed("store", "verify")
    assert done.code == 1 and "1 damaged" in done.out and "--delete" in done.out
    done = typed("store", "verify", "--delete", "--json")
    assert done.code == 1 and json.loads(done.out)["deleted"] == 1
    assert "9 responses read, 0 damaged" in store("verify")


def packed(data: bytes) -> str:
    return (
        f"x'{data.hex()}'"
        if "EVALWRIGHT_STORE" not in os.environ
        else f"'\\x{data.hex()}'::bytea"
    )


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b'{"text":' + b"[" * 50_000 + b"]" * 50_000 + b"}", zlib.compress(b"{}")[:-3], zlib.compress(b"{" * (_LONGEST + 1))],
    ids=["nothing", "cut", "list", "deep", "cut short", "endless"],
)  # fmt: skip
@pytest.mark.parametrize("column", ["request", "response"])
def test_a_row_that_unfolds_to_no_response_is_damaged_and_found(
    own_folder: Path,
    behind: Statements,
    damage: bytes,
    column: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evalwright.engine.store_rows.MAX_CONTENT_BYTES", _LONGEST)
    one = "(SELECT key FROM responses ORDER BY key LIMIT 1)"
    behind(
        own_folder / "home",
        f"UPDATE responses SET {column} = {packed(damage)}, checksum = NULL WHERE key = {one}",
    )
    done = typed("store", "verify")
    assert done.code == 1 and "10 responses read, 1 damaged" in done.out
    done = typed("store", "export", "some.jsonl")
    assert (
        done.code == 1
        and "9 responses written" in done.out
        and "1 damaged ones were left out" in done.out
    )


@pytest.mark.parametrize(
    "change",
    [
        "responses SET created = 'abc'", "responses SET created = 1e300", "responses SET model = x'ff', checksum = NULL",
        "responses SET key = 'text', checksum = NULL", "responses SET request = 5, checksum = NULL", "responses SET response = 5, checksum = NULL",
        "models SET name = x'ff'", "models SET name = 7", "ledger SET sendings = 'many'", "ledger SET dollars = 'much', first = 'x'",
    ],
)  # fmt: skip
def test_a_file_that_another_program_changed_is_no_bug_of_ours(
    own_folder: Path, each_store: str, behind: Statements, change: str
) -> None:
    """SQLite keeps any value in any column."""
    if each_store == "postgres":
        pytest.skip("a server holds columns to their types")
    table = change.split()[0]
    behind(
        own_folder / "home",
        f"UPDATE {change} WHERE rowid = 1"
        if table == "responses"
        else f"UPDATE {change}",
    )
    for words in (["info"], ["info", "--json"], ["verify"], ["export", "x.jsonl"], ["merge", "home", "--home", "new"], ["prune", "--older-than", "1"]):  # fmt: skip
        done = typed("store", *words)
        assert (
            done.code in (0, 1, 2)
            and "bug" not in done.err
            and "Traceback" not in done.text
        ), done.text
        assert done.code != 2 or "did not write" in done.err, done.text
    if table == "responses":
        assert typed("store", "verify", "--delete").code == 1
        assert "9 responses read, 0 damaged" in store("verify")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("PRAGMA user_version=-7", "not one that evalwright wrote"),
        ("PRAGMA user_version=1", "did not write"),
        ("DROP TABLE models", "did not write"),
        (ENDLESS, "did not write"),
        (
            "CREATE TRIGGER t AFTER INSERT ON responses BEGIN DELETE FROM claims; END",
            "did not write",
        ),
        ("ALTER TABLE responses RENAME COLUMN model TO m2", "did not write"),
    ],
)
def test_a_file_with_other_tables_is_refused(
    own_folder: Path, each_store: str, behind: Statements, statement: str, words: str
) -> None:
    if each_store == "postgres":
        pytest.skip("tests/engine/test_postgres.py has those of a server")
    behind(own_folder / "home", statement)
    done = typed("store", "info")
    assert done.code == 2 and words in done.err


def test_responses_are_deleted_by_model_and_age(
    own_folder: Path, behind: Statements
) -> None:
    first = info()["models"][0]
    assert typed("store", "prune").code == 2
    done = typed("store", "prune", "--model", "scripted/constan")
    assert done.code == 2 and "Did you mean 'scripted/constant" in done.err
    assert "No stored response is that old" in store("prune", "--older-than", "1")
    assert "5 responses would be deleted" in store(
        "prune", "--model", first["fingerprint"][:12]
    )
    assert info()["responses"] == 10
    assert "5 responses deleted" in store(
        "prune", "--model", first["fingerprint"], "--yes"
    )
    behind(own_folder / "home", "UPDATE responses SET created = created - 86400 * 3")
    assert "No stored response is that old" in store("prune", "--older-than", "4")
    assert "5 responses deleted" in store("prune", "--older-than", "2", "--yes")
    assert (info()["responses"], info()["sendings"]) == (0, 10)


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_an_export_is_imported_unchanged(
    own_folder: Path, name: str, each_store: str, behind: Statements
) -> None:
    before = behind(
        own_folder / "home",
        "SELECT key, model, request, response, checksum FROM responses ORDER BY key",
    )
    assert "10 responses written" in store("export", name)
    assert typed("store", "export", name).code == 2
    if name.endswith(".gz"):
        with gzip.open(name) as file:
            assert file.readline() == b'{"evalwright_store":1}\n'
    behind(own_folder / "home", "DELETE FROM responses")
    behind(own_folder / "home", "DELETE FROM ledger")
    assert "10 responses, 10 of them new" in store("import", name)
    assert "10 responses, 0 of them new" in store("import", name)
    after = behind(
        own_folder / "home",
        "SELECT key, model, request, response, checksum FROM responses ORDER BY key",
    )
    assert [tuple(map(bytes_of, row)) for row in after] == [
        tuple(map(bytes_of, row)) for row in before
    ]
    assert info()["sendings"] == 10
    done = typed(
        "run",
        "t.yaml",
        "--model",
        "scripted/constant",
        "-M",
        "text=4",
        "--name",
        "again",
    )
    assert (
        done.code == 0
        and json.loads(Path("runs/again/run.json").read_text())["usage"]["stored"] == 5
    )


def bytes_of(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        '{"key": "zz"}',
        '{"ledger": 3}',
        '{"empty": "00", "failure": {"x": 1}}',
        "[]",
        "[" * 100_000,
        '{"key": "00", "model": "m", "request": {}, "response": {"text": "x"}, "created": NaN}',
        '{"key": "00", "model": "m", "request": {}, "response": {"text": "x"}, "created": 1e99}',
        '{"ledger": {"command":"c","model":"m","outcome":"o","estimated":0,"sendings":1e99,"input_tokens":1,"output_tokens":1,"dollars":1,"first":1,"last":1}}',
        '{"ledger": {"command":"c","model":"m","outcome":"o","estimated":0,"sendings":1,"input_tokens":1,"output_tokens":1,"dollars":Infinity,"first":1,"last":1}}',
    ],
)
def test_a_file_that_is_no_export_is_refused_by_its_line(
    own_folder: Path, line: str
) -> None:
    store("export", "all.jsonl")
    text = (own_folder / "all.jsonl").read_text().splitlines()
    (own_folder / "bad.jsonl").write_text("\n".join([*text[:3], line, *text[3:]]))
    done = typed("store", "import", "bad.jsonl")
    assert done.code == 2 and "Line 4 of bad.jsonl" in done.err
    done = typed("store", "import", "bad.jsonl", "--home", "other")
    assert (
        "2 new responses of the lines before it were imported" in done.err
        or info()["kind"] == "PostgreSQL"
    )
    if info()["kind"] == "SQLite":
        assert "2 responses read, 0 damaged" in store("verify", "--home", "other")
    (own_folder / "bad.jsonl").write_text(line)
    done = typed("store", "import", "bad.jsonl")
    assert done.code == 2 and "bad.jsonl is not an exported store" in done.err
    (own_folder / "bad.jsonl").write_text("")
    done = typed("store", "import", "bad.jsonl")
    assert done.code == 2 and "bad.jsonl is not an exported store" in done.err
    done = typed("store", "import", "absent.jsonl")
    assert done.code == 2 and "absent.jsonl cannot be used: No such file" in done.err


def test_a_place_that_is_no_store_shows_no_password() -> None:
    done = typed("store", "merge", "mysql://me:hunter2@localhost/x")
    assert (
        done.code == 2
        and "mysql://localhost/x" in done.err
        and "hunter2" not in done.text
    )


def test_stores_are_merged_and_a_merge_may_be_repeated(
    own_folder: Path, each_store: str
) -> None:
    url = os.environ.pop("EVALWRIGHT_STORE", "")
    done = typed(
        "run",
        "t.yaml",
        "--model",
        "scripted/constant",
        "-M",
        "text=6",
        "--name",
        "r6",
        "--home",
        "other",
    )
    assert done.code == 0, done.text
    os.environ["EVALWRIGHT_HOME"] = str(own_folder / "home")
    if url:
        os.environ["EVALWRIGHT_STORE"] = url
    for new in (5, 0):
        assert f"5 responses, {new} of them new" in store("merge", "other")
        assert (info()["responses"], info()["sendings"]) == (15, 15)
    done = typed("store", "merge", "nowhere")
    assert done.code == 2 and "no store at nowhere" in done.err


@pytest.mark.skipif(bool(missing()), reason=missing() or "never")
def test_a_file_and_a_server_are_merged_into_each_other(
    own_folder: Path, each_store: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    if each_store == "postgres":
        url = os.environ["EVALWRIGHT_STORE"]
        monkeypatch.delenv("EVALWRIGHT_STORE")
        out = store("merge", url)
        assert "10 responses, 10 of them new" in out and url not in out
    else:
        monkeypatch.setenv("EVALWRIGHT_STORE", server.url())
        assert "10 responses, 10 of them new" in store(
            "merge", str(own_folder / "home")
        )
    assert (info()["responses"], info()["sendings"]) == (10, 10)
    done = typed(
        "run",
        "t.yaml",
        "--model",
        "scripted/constant",
        "-M",
        "text=5",
        "--name",
        "again",
    )
    assert (
        done.code == 0
        and json.loads(Path("runs/again/run.json").read_text())["usage"]["stored"] == 5
    )


def test_old_snapshots_of_sandboxes_are_counted_and_deleted(own_folder: Path) -> None:
    assert "snapshots" not in info() and "of sandboxes" not in store("info")
    folder = own_folder / "home" / "sandboxes" / "jail"
    folder.mkdir(parents=True)
    for name in ("old.tar.gz", "new.tar.gz", ".1-partial"):
        (folder / name).write_bytes(b"x" * 1_000)
    long_ago = time.time() - 86400 * 10
    os.utime(folder / "old.tar.gz", (long_ago, long_ago))
    assert info()["snapshots"] == {"files": 2, "bytes": 2_000}
    assert "2 snapshots of sandboxes, 2.0 KB" in store("info")
    store("prune", "--model", info()["models"][0]["fingerprint"], "--older-than", "2")
    said = store("prune", "--older-than", "2")
    assert "1 snapshot of sandboxes would be deleted (add --yes), 1.0 KB." in said
    assert (folder / "old.tar.gz").exists()
    said = store("prune", "--older-than", "2", "--yes")
    assert "1 snapshot of sandboxes deleted" in said
    assert sorted(path.name for path in folder.iterdir()) == [
        ".1-partial",
        "new.tar.gz",
    ]
