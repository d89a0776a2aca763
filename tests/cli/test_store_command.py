"""`evalwright store` on a file and on a server: what it shows, checks, deletes and moves."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.postgres import Server, missing
from support.stores import Statements
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture(autouse=True)
def filled(each_store: str, own_folder: Path) -> None:
    """A store with the responses of two models to five questions each."""
    (own_folder / "t.yaml").write_text(
        "task: t\ndataset: rows.jsonl\nprompt: {user: '{{ input }}'}\nanswer: {mode: generate}\nscorers: [exact-match]\n"
    )
    rows = [
        {"input": f"question {n} \ud55c\uad6d\uc5b4 " + "long " * 400 * (n == 4), "target": "4"}
        for n in range(5)
    ]
    (own_folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for text in ("4", "5"):
        done = typed(
            "run", "t.yaml", "--model", "scripted/constant", "-M", f"text={text}", "--name", f"r{text}"
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
    assert (data["responses"], data["sendings"], data["claims"], data["in_use_by"]) == (10, 10, 0, [])
    assert [model["responses"] for model in data["models"]] == [5, 5]
    assert all(model["model"].startswith("scripted/constant") for model in data["models"])
    assert data["bytes"] > 10_000 and data["warning"] == ""
    text = store("info")
    assert "10 responses" in text and "scripted/constant" in text and data["store"] in text


def test_a_damaged_response_is_found_and_deleted(own_folder: Path, behind: Statements) -> None:
    assert "10 responses read, 0 damaged" in store("verify")
    one = "(SELECT key FROM responses ORDER BY key LIMIT 1)"
    behind(own_folder / "home", f"UPDATE responses SET checksum = checksum + 1 WHERE key = {one}")
    done = typed("store", "verify")
    assert done.code == 1 and "1 damaged" in done.out and "--delete" in done.out
    done = typed("store", "verify", "--delete", "--json")
    assert done.code == 1 and json.loads(done.out)["deleted"] == 1
    assert "9 responses read, 0 damaged" in store("verify")


def test_responses_are_deleted_by_model_and_age(own_folder: Path, behind: Statements) -> None:
    first = info()["models"][0]
    assert typed("store", "prune").code == 2
    assert "No stored response fits" in store("prune", "--model", "other")
    assert "No stored response fits" in store("prune", "--older-than", "1")
    assert "5 responses would be deleted" in store("prune", "--model", first["fingerprint"][:12])
    assert info()["responses"] == 10
    assert "5 responses deleted" in store("prune", "--model", first["fingerprint"], "--yes")
    behind(own_folder / "home", "UPDATE responses SET created = created - 86400 * 3")
    assert "No stored response fits" in store("prune", "--older-than", "4")
    assert "5 responses deleted" in store("prune", "--older-than", "2", "--yes")
    assert (info()["responses"], info()["sendings"]) == (0, 10)


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_an_export_is_imported_unchanged(
    own_folder: Path, name: str, each_store: str, behind: Statements
) -> None:
    before = behind(
        own_folder / "home", "SELECT key, model, request, response, checksum FROM responses ORDER BY key"
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
        own_folder / "home", "SELECT key, model, request, response, checksum FROM responses ORDER BY key"
    )
    assert [tuple(map(bytes_of, row)) for row in after] == [tuple(map(bytes_of, row)) for row in before]
    assert info()["sendings"] == 10
    done = typed("run", "t.yaml", "--model", "scripted/constant", "-M", "text=4", "--name", "again")
    assert done.code == 0 and json.loads(Path("runs/again/run.json").read_text())["usage"]["stored"] == 5


def bytes_of(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.mark.parametrize(
    "line", ["nonsense", '{"key": "zz"}', '{"ledger": 3}', '{"empty": "00", "failure": {"x": 1}}', "[]"]
)
def test_a_file_that_is_no_export_is_refused_by_its_line(own_folder: Path, line: str) -> None:
    store("export", "all.jsonl")
    text = (own_folder / "all.jsonl").read_text().splitlines()
    (own_folder / "bad.jsonl").write_text("\n".join([*text[:3], line, *text[3:]]))
    done = typed("store", "import", "bad.jsonl")
    assert done.code == 2 and "Line 4 of bad.jsonl" in done.err
    (own_folder / "bad.jsonl").write_text(line)
    done = typed("store", "import", "bad.jsonl")
    assert done.code == 2 and "bad.jsonl is no exported store" in done.err
    done = typed("store", "import", "absent.jsonl")
    assert done.code == 2 and "absent.jsonl cannot be used: No such file" in done.err


def test_stores_are_merged_and_a_merge_may_be_repeated(own_folder: Path, each_store: str) -> None:
    url = os.environ.pop("EVALWRIGHT_STORE", "")
    done = typed(
        "run", "t.yaml", "--model", "scripted/constant", "-M", "text=6", "--name", "r6", "--home", "other"
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
        assert "10 responses, 10 of them new" in store("merge", str(own_folder / "home"))
    assert (info()["responses"], info()["sendings"]) == (10, 10)
    done = typed("run", "t.yaml", "--model", "scripted/constant", "-M", "text=5", "--name", "again")
    assert done.code == 0 and json.loads(Path("runs/again/run.json").read_text())["usage"]["stored"] == 5
