"""The articles and labelled summaries of `summary-faithfulness`: complete, balanced and true to themselves.

What a reader can get wrong by a slip is checked by counting: every number of a supported summary is in its
article, or follows from its numbers by a computation that the row states and that is done again here.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from evalwright.tasks.index import LIBRARY

FOLDER = LIBRARY / "summary_faithfulness"
CATEGORIES = {
    "news",
    "science",
    "medicine",
    "law",
    "business",
    "sports",
    "history",
    "technology",
    "education",
}
ERRORS = {
    "wrong number",
    "wrong date",
    "wrong entity",
    "swapped roles",
    "wrong relation or cause",
    "negation",
    "overstatement",
    "invented detail",
    "wrong comparison",
    "wrong quantity unit",
    "merged facts",
    "outside knowledge",
}
NOT_IN_ARTICLE = "not in the article"
ROW_KEYS = {"id", "article_id", "summary", "label", "error", "evidence"}
ARTICLE_KEYS = {"article_id", "text", "dataset", "category", "text_type"}

Row = dict[str, Any]


@cache
def read(name: str) -> tuple[Row, ...]:
    with (FOLDER / name).open(encoding="utf-8") as file:
        return tuple(json.loads(line) for line in file)


def articles(*, empty: bool = True) -> list[Row]:
    return [row for row in read("articles.jsonl") if empty or row["category"] != "empty"]


def summaries(label: str | None = None) -> list[Row]:
    return [row for row in read("labelled.jsonl") if label in (None, row["label"])]


def text_of(row: Row) -> str:
    return next(str(a["text"]) for a in read("articles.jsonl") if a["article_id"] == row["article_id"])


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+(?:[.,'-][a-z0-9]+)*", text.lower().replace("’", "'"))


def shingles(text: str, size: int) -> set[tuple[str, ...]]:
    tokens = words(text)
    return {tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)}


# Numbers, as digits and as words. "one" and "first" are left out: they are pronouns and adverbs too often.

TO_NINETEEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
TO_NINETY = "twenty thirty forty fifty sixty seventy eighty ninety"
TO_TWENTIETH = (
    "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
UNITS = {word: number for number, word in enumerate(TO_NINETEEN.split())}
TENS = {word: 10 * number for number, word in enumerate(TO_NINETY.split(), 2)}
ORDINALS = {word: number for number, word in enumerate(TO_TWENTIETH.split(), 2)}
OTHERS = {
    **{f"{word}s": number for word, number in ORDINALS.items() if number > 2},
    **dict.fromkeys(["half", "halved", "halves"], 0.5),
    **dict.fromkeys(["quarter", "quarters"], 0.25),
    **dict.fromkeys(["twice", "double", "doubled", "doubling", "doubles"], 2),
    **dict.fromkeys(["tripled", "treble", "triple"], 3),
    **dict.fromkeys(["decade", "decades"], 10),
    "dozen": 12,
    "fortnight": 14,
}


def numbers(text: str) -> set[float]:
    """The numbers of a text; "two hundred and forty" is 240, "2.5 million" is 2.5."""
    found: set[float] = set()
    tokens = re.findall(r"\d[\d,]*(?:\.\d+)?|[a-z]+", text.lower())
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token[0].isdigit():
            found.add(float(token.replace(",", "")))
        elif token in UNITS or token in TENS or token in ("hundred", "thousand"):
            value, length = spelled(tokens[at:])
            if (value, length) != (1, 1):
                found.add(value)
            at += length - 1
        elif token in ORDINALS or token in OTHERS:
            found.add(float(ORDINALS.get(token, OTHERS.get(token, 0))))
        at += 1
    return found


def spelled(tokens: list[str]) -> tuple[float, int]:
    """The number at the head of these words, and how many of them it takes."""
    thousands = current = length = 0
    for place, token in enumerate(tokens):
        after_tens = current % 10 == 0 and current % 100 >= 20
        if token in UNITS and (not current % 100 or (after_tens and UNITS[token] < 10)):
            current += UNITS[token]
        elif token in TENS and not current % 100:
            current += TENS[token]
        elif token in ORDINALS and place and after_tens and ORDINALS[token] < 10:
            current += ORDINALS[token]
        elif token == "hundred":
            current = max(current, 1) * 100
        elif token == "thousand":
            thousands, current = max(current, 1) * 1000, 0
        elif token == "and" and place and tokens[place - 1] in ("hundred", "thousand"):
            if not (set(tokens[place + 1 : place + 2]) & (UNITS.keys() | TENS.keys())):
                break
            continue
        else:
            break
        length = place + 1
    return float(thousands + current), length


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two hundred and forty of 1,250", {240, 1250}),
        ("twenty-one, the forty-second, and 3.5 million", {21, 42, 3.5}),
        ("one thousand and six; a dozen; half of it; two thirds", {1006, 12, 0.5, 2, 3}),
        ("one of them, at first", set()),
        ("three hundred and more, nine and ten, seventeen times nineteen", {300, 9, 10, 17, 19}),
    ],
)
def test_numbers_are_read_from_words_and_digits(text: str, expected: set[float]) -> None:
    assert numbers(text) == expected


# Computations: "5 + 7 = 12" holds exactly, "31 / 150 ≈ 0.2" to within six per cent.

EQUATION = re.compile(r"([\d.,+\-*/() ]*[\d)])\s*([=≈])\s*(\d[\d,]*(?:\.\d+)?)")
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
FREE = {*range(1, 13), 24, 28, 29, 30, 31, 52, 60, 90, 100, 365, 1000}
"""Small numbers and those of calendars, clocks, percentages: a computation may use them freely."""


def compute(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](compute(node.left), compute(node.right))
    assert isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    return float(node.value)


def equations(sentence: str) -> Iterator[tuple[str, str, float]]:
    for left, sign, right in EQUATION.findall(sentence):
        yield left.replace(",", "").strip(), sign, float(right.replace(",", ""))


def test_every_computation_is_right_and_starts_from_the_article() -> None:
    derived = [row for row in summaries() if "derived" in row]
    assert len(derived) >= 50
    for row in derived:
        known = numbers(text_of(row)) | FREE
        steps = list(equations(row["derived"]))
        assert steps, row["id"]
        for left, sign, right in steps:
            assert {float(part) for part in re.findall(r"\d+(?:\.\d+)?", left)} <= known, row["id"]
            value = compute(ast.parse(left, mode="eval").body)
            assert value == pytest.approx(right, rel=1e-9 if sign == "=" else 0.06), row["id"]
            known.add(right)


def unexplained(row: Row) -> set[float]:
    """Numbers of a summary that neither its article nor its stated computation has, the wrong words apart."""
    summary = str(row["summary"])
    if row["evidence"]:
        summary = summary.replace(row["evidence"]["summary"], " ")
    return numbers(summary) - numbers(text_of(row)) - numbers(row.get("derived", ""))


@pytest.mark.parametrize("label", ["supported", "unsupported"])
def test_every_number_is_in_the_article_or_computed_from_it(label: str) -> None:
    assert {row["id"]: unexplained(row) for row in summaries(label) if unexplained(row)} == {}


def test_a_slip_in_a_number_would_be_found() -> None:
    row = next(row for row in summaries("supported") if re.search(r"\d{3}", row["summary"]))
    assert unexplained({**row, "summary": re.sub(r"\d{3}", "987", row["summary"], count=1)})


# Form


def test_articles_have_their_fields() -> None:
    assert len(articles(empty=False)) >= 104
    for row in articles():
        assert set(row) == ARTICLE_KEYS | ({"expects"} if row["category"] == "empty" else set())
        assert row["article_id"].rpartition("-")[0] == row["category"]
        assert row["dataset"] == "evalwright-articles"
        assert row["text"] == row["text"].strip()
    assert [row["expects"] for row in articles() if row["category"] == "empty"] == ["refusal"] * 6


def test_articles_are_spread_over_categories_and_kinds() -> None:
    categories = Counter(row["category"] for row in articles(empty=False))
    assert set(categories) == CATEGORIES
    assert min(categories.values()) >= 12
    kinds = Counter(row["text_type"] for row in articles())
    assert set(kinds) == {"standard_text", "intensive_text"}
    assert min(kinds.values()) >= 0.45 * kinds.total()


def test_lengths() -> None:
    assert all(120 <= len(row["text"].split()) <= 450 for row in articles(empty=False))
    assert all(25 <= len(row["summary"].split()) <= 90 for row in summaries())


@pytest.mark.parametrize(("name", "key"), [("articles.jsonl", "article_id"), ("labelled.jsonl", "id")])
def test_ids_are_unique(name: str, key: str) -> None:
    rows = read(name)
    assert len({row[key] for row in rows}) == len(rows)


def test_every_article_has_two_summaries_of_each_label() -> None:
    counts = Counter((row["article_id"], row["label"]) for row in summaries())
    assert set(counts) == {
        (row["article_id"], label) for row in articles(empty=False) for label in ("supported", "unsupported")
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
        wrong, contradiction = row["evidence"]["summary"], row["evidence"]["article"]
        assert row["summary"].count(wrong) == 1, row["id"]
        assert len(words(wrong)) < 3 or wrong not in text_of(row), row["id"]
        assert contradiction == NOT_IN_ARTICLE or contradiction in text_of(row), row["id"]
        if row["error"] in ("invented detail", "outside knowledge"):
            assert contradiction == NOT_IN_ARTICLE, row["id"]


def test_no_article_is_nearly_another() -> None:
    parts = [shingles(row["text"], 4) for row in articles(empty=False)]
    assert all(len(one & two) <= 0.03 * min(len(one), len(two)) for one, two in combinations(parts, 2))


def test_no_summary_is_nearly_another() -> None:
    texts = [row["summary"] for row in summaries()]
    assert len(set(texts)) == len(texts)
    parts = [shingles(text, 3) for text in texts]
    assert all(len(one & two) <= 0.35 * min(len(one), len(two)) for one, two in combinations(parts, 2))


# Nothing on the surface tells the labels apart


def surface(row: Row) -> dict[str, float]:
    tokens, source = words(row["summary"]), text_of(row)
    triples = shingles(row["summary"], 3)
    return {
        "words": len(tokens),
        "sentences": len(re.findall(r"[.!?](?:\s|$)", row["summary"])),
        "share of words in the article": float(np.mean([t in set(words(source)) for t in tokens])),
        "share of three words in a row in the article": len(triples & shingles(source, 3)) / len(triples),
        "digits": sum(character.isdigit() for character in row["summary"]),
        "numbers": len(numbers(row["summary"])),
        "numbers not in the article": len(numbers(row["summary"]) - numbers(source)),
        "capital letters": len(re.findall(r"\b[A-Z]", row["summary"])),
        "negations": len(re.findall(r"\b(?:not|no|never|nobody|none|nor|without)\b", row["summary"])),
        "hedges": len(
            re.findall(
                r"\b(?:may|might|could|perhaps|probably|seems?|suspects?|thinks?|believes?)\b", row["summary"]
            )
        ),
    }


@cache
def surfaces(label: str) -> tuple[dict[str, float], ...]:
    return tuple(surface(row) for row in summaries(label))


def separation(name: str) -> float:
    """How often an unsupported summary has more of a feature than a supported one, ties as half: the AUC."""
    one, two = (np.array([row[name] for row in surfaces(label)]) for label in ("unsupported", "supported"))
    difference = np.sign(one[:, None] - two[None, :])
    return float((difference.mean() + 1) / 2)


@pytest.mark.parametrize("name", list(surface(read("labelled.jsonl")[0])))
def test_no_feature_of_the_surface_gives_the_label_away(name: str) -> None:
    assert 0.42 <= separation(name) <= 0.58


def test_labels_have_equal_lengths_and_shares_on_average() -> None:
    means = {
        label: {name: np.mean([row[name] for row in surfaces(label)]) for name in surfaces(label)[0]}
        for label in ("supported", "unsupported")
    }
    one, two = means["supported"], means["unsupported"]
    assert two["words"] == pytest.approx(one["words"], rel=0.03)
    assert two["digits"] == pytest.approx(one["digits"], rel=0.1)
    copied = "share of words in the article"
    assert two[copied] == pytest.approx(one[copied], abs=0.03)


def test_the_place_of_a_summary_does_not_give_its_label_away() -> None:
    places = Counter((row["id"][-1], row["label"]) for row in summaries())
    assert {place for place, _ in places} == set("abcd")
    for place in "abcd":
        share = places[place, "supported"] / (places[place, "supported"] + places[place, "unsupported"])
        assert 0.35 <= share <= 0.65


# The card


def test_the_card_counts_as_the_files_do() -> None:
    card = (FOLDER / "CARD.md").read_text(encoding="utf-8")
    for category, count in Counter(row["category"] for row in articles()).items():
        assert f"| {category} | {count} |" in card
    for error, count in Counter(row["error"] for row in summaries("unsupported")).items():
        assert f"| {error} | {count} |" in card
    for label in ("supported", "unsupported"):
        assert f"{len(summaries(label))} {label}" in card
