"""Writes the data of the task judge-consistency: each labelled summary of summary-faithfulness with
its article.

    python scripts/join_judge_consistency.py [FOLDER]

FOLDER (summary-faithfulness's own by default) holds articles.jsonl and labelled.jsonl. `half` says
which half an article is in, by a hash of its id: whoever fits a judge to these pairs may use
"fitted", and measures on "held out".
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

LIBRARY = Path(__file__).resolve().parents[1] / "src/evalwright/tasks/library"
SOURCE = LIBRARY / "summary_faithfulness"
TARGET = LIBRARY / "judge_consistency/pairs.jsonl"


def join_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of pairs.jsonl, in the order of the labelled summaries."""
    articles = {row["article_id"]: row for row in lines(folder / "articles.jsonl")}
    pairs = []
    for row in lines(folder / "labelled.jsonl"):
        article = articles[row["article_id"]]
        pairs.append(
            {
                "id": row["id"],
                "article_id": row["article_id"],
                "category": article["category"],
                "text_type": article["text_type"],
                "half": "fitted" if is_fitted_on(row["article_id"]) else "held out",
                "label": row["label"],
                "error": row["error"],
                "summary": row["summary"],
                "article": article["text"],
            }
        )
    return pairs


def is_fitted_on(article_id: str) -> bool:
    """Whether an article is in the half that may be fitted on: by a hash of its id, so that adding
    articles moves none.
    """
    return (
        hashlib.blake2b(
            f"consistency-split:{article_id}".encode(), digest_size=8
        ).digest()[0]
        % 2
        == 0
    )


def lines(path: Path) -> list[dict[str, Any]]:
    """Read a JSONL file."""
    return [
        json.loads(line)
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, nargs="?", default=SOURCE)
    rows = join_rows(parser.parse_args().folder)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    TARGET.write_text(text, encoding="utf-8")
    print(f"{len(rows)} pairs, {len(text.encode()) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
