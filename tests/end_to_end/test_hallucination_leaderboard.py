"""A hallucination leaderboard from end to end: three providers' wire formats, faults, an HTTP
judge and the offline one, a README.

EVALWRIGHT_ARTICLES=500 makes it as large as a real one.
"""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

from support.article_files import write_articles
from support.leaderboard_servers import KEYS, Servers, serving_leaderboard
from support.typed import typed

N = int(os.environ.get("EVALWRIGHT_ARTICLES", "24"))


def evalwright(folder: Path, *arguments: str, wanted: int = 0) -> str:
    """Run a command as a person does; its standard output."""
    done = typed(
        *arguments,
        folder=folder,
        extra={**KEYS, "EVALWRIGHT_HOME": str(folder / "home")},
    )
    assert done.code == wanted, f"{' '.join(arguments)}\n{done.text}"
    for key in KEYS.values():
        assert key not in done.text
    return done.out


def suite(folder: Path, servers: Servers) -> None:
    labels = ("Provider A small", "Provider B medium", "Provider C large")
    models = "\n".join(
        f"  - {{model: '{name}', label: {label}}}"
        for name, label in zip(servers.models, labels, strict=True)
    )
    (folder / "leaderboard.yaml").write_text(
        f"tasks: [summary-faithfulness]\noverrides: {{dataset.path: articles.csv}}\n"
        f"common: {{timeout: 20}}\nmodels:\n{models}\n"
        f"roles:\n  judge: {{model: vectara/hhem_v2.3, arguments: {{base_url: '{servers.judge.root}'}}}}\n"
    )


def numbers(run: dict[str, Any]) -> dict[str, float]:
    return {metric["label"]: metric["value"] for metric in run["tasks"][0]["metrics"]}


def test_from_articles_to_a_published_board(tmp_path: Path) -> None:
    write_articles(tmp_path / "articles.csv", N, max(2, N // 60))
    with serving_leaderboard(faults=0.08) as servers:
        suite(tmp_path, servers)
        trust = ("--trust-file", "leaderboard.yaml")
        run = (
            "run",
            "--config",
            "leaderboard.yaml",
            *trust,
            "--name",
            "live",
            "--json",
            "--quiet",
        )
        first = json.loads(evalwright(tmp_path, *run))
        assert len(first) == 3
        for made in first:
            assert (
                made["tasks"][0]["n_samples"] == N and not made["tasks"][0]["failures"]
            )
            assert made["usage"]["retries"] > 0
        rates = [numbers(made)["hallucination-rate"] for made in first]
        assert all(rate < 0.5 for rate in rates) and max(rates) > 0
        assert any(
            numbers(made)["refused"] or numbers(made)["too-short"] for made in first
        )

        # A second run asks nothing of anybody.
        before = servers.received()
        second = json.loads(evalwright(tmp_path, *run))
        assert servers.received() == before
        assert [numbers(made) for made in second] == [numbers(made) for made in first]

        # Another judge: nobody is asked but that judge.
        evalwright(
            tmp_path,
            "score",
            first[0]["id"],
            "--role",
            "judge=baseline/lexical",
            "--name",
            "offline",
        )
        assert servers.received() == before

        publish(tmp_path, [made["id"] for made in first])


def publish(folder: Path, runs: list[str]) -> None:
    (folder / "README.md").write_text("# Ours\n\nBefore.\n\nAfter.\n")
    board = (
        "leaderboard", *runs, "--into", "README.md", "--html", "site/index.html", "--pages", "site/models",
        "--csv", "board.csv", "--json-file", "board.json", "--title", "Hallucination leaderboard",
    )  # fmt: skip
    evalwright(folder, *board)
    written = {
        path: path.read_bytes()
        for path in (folder / "README.md", folder / "board.csv", folder / "board.json")
    }
    text = written[folder / "README.md"].decode()
    assert (
        text.startswith("# Ours\n\nBefore.\n\nAfter.\n")
        and "`Provider A small`" in text
    )
    assert "Hallucination rate" in text and "Answer rate" in text
    with (folder / "board.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 3
    assert len(list((folder / "site/models").glob("*.html"))) == 3
    evalwright(folder, *board)
    assert written == {path: path.read_bytes() for path in written}
