"""The articles and labelled summaries of `summary-faithfulness`: complete, balanced, and not
told apart by their surface.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from evalwright.tasks.index import LIBRARY

FOLDER = LIBRARY / "summary_faithfulness"
ERRORS = {
    "wrong number", "wrong date", "wrong entity", "swapped roles", "wrong relation or cause", "negation",
    "overstatement", "invented detail", "wrong comparison", "wrong quantity unit", "merged facts",
    "outside knowledge",
}  # fmt: skip
NOT_IN_ARTICLE = "not in the article"
ROW_KEYS = {"id", "article_id", "summary", "label", "error", "evidence"}
ARTICLE_KEYS = {"article_id", "text", "dataset", "category", "text_type"}

Row = dict[str, Any]


@cache
def read(name: str) -> tuple[Row, ...]:
    with (FOLDER / name).open(encoding="utf-8") as file:
        return tuple(json.loads(line) for line in file)


def articles(*, empty: bool = True) -> list[Row]:
    return [
        row for row in read("articles.jsonl") if empty or row["category"] != "empty"
    ]


def summaries(label: str | None = None) -> list[Row]:
    return [row for row in read("labelled.jsonl") if label in (None, row["label"])]


def text_of(row: Row) -> str:
    return next(
        str(a["text"])
        for a in read("articles.jsonl")
        if a["article_id"] == row["article_id"]
    )


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+(?:[.,'-][a-z0-9]+)*", text.lower().replace("’", "'"))


def shingles(text: str, size: int) -> set[tuple[str, ...]]:
    tokens = words(text)
    return {tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)}


# Form


def test_articles_have_their_fields() -> None:
    assert len(articles(empty=False)) >= 104
    for row in articles():
        assert set(row) == ARTICLE_KEYS | (
            {"expects"} if row["category"] == "empty" else set()
        )
        assert row["article_id"].rpartition("-")[0] == row["category"]
        assert row["dataset"] == "evalwright-articles"
        assert row["text"] == row["text"].strip()
    assert [row["expects"] for row in articles() if row["category"] == "empty"] == [
        "refusal"
    ] * 6


def test_every_article_has_two_summaries_of_each_label() -> None:
    counts = Counter((row["article_id"], row["label"]) for row in summaries())
    assert set(counts) == {
        (row["article_id"], label)
        for row in articles(empty=False)
        for label in ("supported", "unsupported")
    }
    assert set(counts.values()) == {2}
    assert len(summaries("supported")) == len(summaries("unsupported")) >= 208


def test_summaries_have_their_fields() -> None:
    for row in summaries():
        assert set(row) - {"derived"} == ROW_KEYS
        assert row["id"].rpartition("-")[0] == row["article_id"]
        assert (row["error"] in ERRORS) is (row["label"] == "unsupported")
        assert (row["evidence"] is None) is (row["label"] == "supported")
        assert (row["error"] is None) is (row["label"] == "supported")


def test_every_kind_of_error_is_there_equally_often() -> None:
    kinds = Counter(row["error"] for row in summaries("unsupported"))
    assert set(kinds) == ERRORS
    assert min(kinds.values()) >= 12
    assert max(kinds.values()) <= 1.5 * min(kinds.values())


def test_evidence_is_in_summary_and_article() -> None:
    for row in summaries("unsupported"):
        wrong = row["evidence"]["summary"]
        contradiction = row["evidence"]["article"]
        assert row["summary"].count(wrong) == 1, row["id"]
        assert len(words(wrong)) < 3 or wrong not in text_of(row), row["id"]
        assert contradiction == NOT_IN_ARTICLE or contradiction in text_of(row), row[
            "id"
        ]
        if row["error"] in ("invented detail", "outside knowledge"):
            assert contradiction == NOT_IN_ARTICLE, row["id"]


def test_no_summary_is_nearly_another() -> None:
    texts = [row["summary"] for row in summaries()]
    assert len(set(texts)) == len(texts)
    parts = [shingles(text, 3) for text in texts]
    assert all(
        len(one & two) <= 0.35 * min(len(one), len(two))
        for one, two in combinations(parts, 2)
    )


# Nothing on the surface tells the labels apart


def surface(row: Row) -> dict[str, float]:
    tokens = words(row["summary"])
    source = text_of(row)
    triples = shingles(row["summary"], 3)
    return {
        "words": len(tokens),
        "sentences": len(re.findall(r"[.!?](?:\s|$)", row["summary"])),
        "share of words in the article": float(
            np.mean([t in set(words(source)) for t in tokens])
        ),
        "share of three words in a row in the article": len(
            triples & shingles(source, 3)
        )
        / len(triples),
        "digits": sum(character.isdigit() for character in row["summary"]),
        "capital letters": len(re.findall(r"\b[A-Z]", row["summary"])),
        "negations": len(
            re.findall(r"\b(?:not|no|never|nobody|none|nor|without)\b", row["summary"])
        ),
        "hedges": len(
            re.findall(
                r"\b(?:may|might|could|perhaps|probably|seems?|suspects?|thinks?|believes?)\b",
                row["summary"],
            )
        ),
    }


@cache
def surfaces(label: str) -> tuple[dict[str, float], ...]:
    return tuple(surface(row) for row in summaries(label))


def separation(name: str) -> float:
    """How often an unsupported summary has more of a feature than a supported one, ties as half:
    the AUC.
    """
    one, two = (
        np.array([row[name] for row in surfaces(label)])
        for label in ("unsupported", "supported")
    )
    difference = np.sign(one[:, None] - two[None, :])
    return float((difference.mean() + 1) / 2)


@pytest.mark.parametrize("name", list(surface(read("labelled.jsonl")[0])))
def test_no_feature_of_the_surface_gives_the_label_away(name: str) -> None:
    assert 0.42 <= separation(name) <= 0.58
