"""Similarity: the measures against numbers worked out by hand, the vectors' door, and what no
measure may hide.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate
from evalwright.core.errors import (
    AbilityError,
    ConfigurationError,
    ScoringError,
    UsageError,
)
from evalwright.core.requests import Embed, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind
from evalwright.scorers.similarity import character_f, cosines, similarity
from evalwright.tasks.loading import task_from_definition

COMPOSED = "caf\u00e9"
DECOMPOSED = "cafe\u0301"


def score(
    targets: str | tuple[str, ...],
    text: str,
    question: str = "",
    vectors: Mapping[str, Sequence[float]] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> Score:
    """The score; with `vectors` an embedder has those."""

    async def ask(role: str, request: Request) -> Response:
        assert role == "embedder"
        assert isinstance(request, Embed)
        assert vectors is not None
        return Response(values=tuple(vectors[request.text]))

    found = (targets,) if isinstance(targets, str) else targets
    sample = Sample("s", question, found, metadata=metadata or {})
    if vectors is not None:
        options["role"] = "embedder"
    return asyncio.run(similarity(sample, Answer(text), ask, **options))


# -- the measures
# -------------------------------------------------------------------------------------------------------


def brute_force(one: str, other: str) -> float:
    """The character F by matching n-grams off one another, one at a time."""
    found = []
    for n in range(1, min(6, max(len(one), len(other))) + 1):
        left = [one[i : i + n] for i in range(len(one)) if i + n <= len(one)]
        rest = [other[i : i + n] for i in range(len(other)) if i + n <= len(other)]
        total = len(left) + len(rest)
        common = 0
        for gram in left:
            if gram in rest:
                rest.remove(gram)
                common += 1
        found.append(2 * common / total if total else 0.0)
    return sum(found) / len(found)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("abab", "ab"),
        ("banana", "bananarama"),
        ("x", "xylophone"),
        ("aaaaaaa", "aaa"),
        ("東京は首都", "首都は東京"),
    ],
)
def test_characters_equal_a_brute_force_count(one: str, other: str) -> None:
    assert character_f(one, other) == pytest.approx(brute_force(one, other), abs=1e-12)
    assert character_f(one, other) == character_f(other, one)


def test_characters_by_hand() -> None:
    # 1-grams: 2 of 2 and 4; 2-grams: 1 of 1 and 3; longer ones: none of 0 and 2, 0 and 1.
    assert character_f("ab", "abab") == pytest.approx((4 / 6 + 2 / 4 + 0 + 0) / 4)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (COMPOSED, DECOMPOSED),
        ("The Red House.", "the red house"),
        ("straße", "STRASSE"),
        ("Ёлка", "елка"),
        ("मुख्य शहर", "मुख्य-शहर"),
        ("東京　です。", "東京です"),
        ("", " ?"),
    ],
)
def test_spelling_is_no_difference(one: str, other: str) -> None:
    assert character_f(one, other) == 1.0


def test_vowel_signs_are_a_difference() -> None:
    assert character_f("कि", "की") < 1.0


def test_token_f1_is_that_of_its_scorer() -> None:
    found = score("red house", "a red house by a lake", measure="token-f1")
    assert found.value == pytest.approx(2 * 0.5 * 1 / 1.5)
    assert (found.label, found.parts["token_f1"]) == ("similar", found.value)


def test_cosine() -> None:
    vectors = {"it rained": [3.0, 4.0], "rain fell": [4.0, 3.0], "snow": [-4.0, 3.0]}
    found = score(("snow", "rain fell"), "it rained", vectors=vectors)
    assert found.label == "similar"
    assert found.value == pytest.approx(24 / 25)
    assert found.parts["cosine"] == pytest.approx(24 / 25)
    assert "rain fell" in found.explanation
    assert (
        score("rain fell", "it rained", vectors=vectors, threshold=0.97).label
        == "different"
    )


def test_a_negative_cosine_is_no_negative_score() -> None:
    found = score(
        "rain fell",
        "it rained",
        vectors={"it rained": [1.0, 0.0], "rain fell": [-1.0, 0.0]},
    )
    assert (found.value, found.parts["cosine"], found.label) == (0.0, -1.0, "different")


def test_cosines_of_any_size_equal_plain_arithmetic() -> None:
    one = [0.3, -0.2, 0.9]
    other = [0.1, 0.5, 0.4]
    plain = (
        sum(a * b for a, b in zip(one, other, strict=True))
        / math.hypot(*one)
        / math.hypot(*other)
    )
    for size in (1e-300, 1.0, 1e300):
        assert cosines([[size * value for value in one], other]) == [
            pytest.approx(plain, rel=1e-12)
        ]
    assert cosines([one, one])[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0], [1.0]], "different lengths"),
        ([[], []], "different lengths"),
        ([[0.0, 0.0], [1.0, 0.0]], "zeros"),
        ([[float("nan"), 0.0], [1.0, 0.0]], "finite"),
    ],
)
def test_vectors_that_cannot_be_compared(
    vectors: list[list[float]], message: str
) -> None:
    with pytest.raises(ScoringError, match=message):
        cosines(vectors)


def test_one_spelling_is_embedded_once() -> None:
    found = score(COMPOSED, DECOMPOSED, vectors={COMPOSED: [1.0, 2.0]})
    assert found.value == pytest.approx(1.0)


def test_nothing_said() -> None:
    assert (score("rain", "  ").value, score("rain", "  ").label) == (0.0, "different")
    with pytest.raises(ScoringError, match="no target"):
        score((), "rain")


# -- what no measure may hide
# -------------------------------------------------------------------------------------------

SAME = [1.0, 0.0]


@pytest.mark.parametrize(
    ("target", "text", "why"),
    [
        ("It was built in 1889.", "It was built in 1899.", "'1899' in place of '1889'"),
        ("The tower is 300 metres high.", "The tower is 330 metres high.", "'330'"),
        ("塔は1889年に建てられた", "塔は1899年に建てられた", "'1899'"),
        ("بني البرج عام ١٨٨٩", "بني البرج عام ١٨٩٩", "'1899'"),
    ],
)
def test_another_number_is_never_similar(target: str, text: str, why: str) -> None:
    found = score(target, text, vectors=Anything())
    assert (found.value, found.label, found.parts["blocked"]) == (0.0, "different", 1.0)
    assert found.parts["cosine"] == pytest.approx(1.0)
    assert why in found.explanation
    assert score(target, text, measure="characters").value == 0.0


@pytest.mark.parametrize(
    ("target", "text", "metadata", "why"),
    [
        ("It weighs 2 kg.", "Its weight is 2,000 grams.", {}, "'2000' in place of '2'"),
        (
            "It is 100 m high.",
            "It is 105 m high.",
            {"tolerance": {"relative": 0.1}},
            "'105'",
        ),
        (
            "It was painted by Claude Monet.",
            "It was painted by Edgar Degas.",
            {},
            "'Edgar' in place of 'Claude'",
        ),
        (
            "Его написал Лев Толстой.",
            "Его написал Антон Чехов.",
            {"language": "ru"},
            "Антон",
        ),
        (
            "La capitale est Lyon.",
            "La capitale est Paris.",
            {"language": "fr"},
            "Paris",
        ),
    ],
)
def test_what_may_be_another_is_unsure(
    target: str, text: str, metadata: dict[str, Any], why: str
) -> None:
    found = score(target, text, metadata=metadata, vectors=Anything())
    assert (found.value, found.label) == (0.0, "different")
    assert why in found.unsure


@pytest.mark.parametrize(
    ("target", "text", "question", "language"),
    [
        ("It was built in 1889.", "It was built in the year 1889.", "", "en"),
        ("It was built in 1889.", "It was built long ago.", "", "en"),
        ("It grew.", "It grew by 5 percent in 1990.", "", "en"),
        ("It was painted by Claude Monet.", "Monet painted it.", "", "en"),
        ("Claude Monet painted it in Giverny.", "It was done by Monet.", "", "en"),
        ("It lies in Peru.", "The Andes of Peru hold it.", "", "en"),
        ("It rose by 4 percent.", "In 1990 it rose.", "What happened in 1990?", "en"),
        ("The king died.", "Yesterday the king passed away.", "", "en"),
        ("Das Auto fuhr davon.", "Der Wagen fuhr davon.", "", "de"),
        ("El coche es rojo.", "Es rojo el automóvil.", "", "es"),
    ],
)
def test_what_is_no_contradiction(
    target: str, text: str, question: str, language: str
) -> None:
    found = score(
        target, text, question, metadata={"language": language}, vectors=Anything()
    )
    assert found.label == "similar", found.explanation
    assert found.value == pytest.approx(1.0)


class Anything(dict[str, Sequence[float]]):
    """An embedder that takes all texts for the same."""

    def __missing__(self, text: str) -> Sequence[float]:
        return SAME


@pytest.mark.parametrize(
    ("target", "text", "kind"),
    [
        ("Paris", "It is Lyon.", "name"),
        ("12", "It is 13.", "number"),
        ("4 July 1776", "5 July 1776", "date"),
        ("yes", "No, it is not.", "yes_no"),
        ("yes", "No.", ""),
    ],
)
def test_exact_answers_must_be_found_by_rule(target: str, text: str, kind: str) -> None:
    metadata = {"answer_type": kind} if kind else {}
    found = score(target, text, metadata=metadata, vectors=Anything())
    assert (found.value, found.label, found.parts["blocked"]) == (0.0, "different", 1.0)


def test_an_exact_answer_that_is_right_keeps_its_similarity() -> None:
    found = score(
        "Paris", "It is Paris.", metadata={"answer_type": "name"}, vectors=Anything()
    )
    assert found.value == pytest.approx(1.0)
    assert "blocked" not in found.parts


def test_a_target_that_nothing_contradicts_goes_before_a_more_similar_one() -> None:
    found = score(
        ("It rained in 1998.", "Rain fell."), "It rained in 1989.", measure="characters"
    )
    assert "blocked" not in found.parts
    assert "Rain fell." in found.explanation
    assert found.value == pytest.approx(character_f("It rained in 1989.", "Rain fell."))


# -- options, and a whole run
# -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "cosine"},
        {"measure": "bleu"},
        {"role": "embedder", "measure": "characters"},
        {"role": ""},
        {"threshold": 0},
        {"threshold": 1.5},
        {"threshold": True},
    ],
)
def test_options_are_checked_when_bound(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        bind("similarity", options)


def test_roles() -> None:
    assert bind("similarity").roles == ()
    assert bind("similarity", {"role": "embedder"}).roles == ("embedder",)


def definition(scorers: list[Any], **columns: Any) -> dict[str, Any]:
    rows = [{"id": "1", "q": "What happened?", "a": "Rain fell.", **columns}]
    sample: dict[str, Any] = {"id": "{{ id }}", "input": "{{ q }}", "target": "{{ a }}"}
    if columns:
        sample["metadata"] = {name: "{{ " + name + " }}" for name in columns}
    return {
        "task": "t",
        "dataset": {"rows": rows},
        "sample": sample,
        "prompt": {"user": "{{ input }}"},
        "answer": {"mode": "generate", "max_tokens": 20},
        "scorers": scorers,
        "metrics": ["mean"],
    }


def test_a_run_with_an_embedder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = task_from_definition(
        definition([{"use": "similarity", "name": "similarity", "role": "embedder"}])
    )
    embedder = ScriptedModel(
        lambda request: [3.0, 4.0] if "fell" in repr(request) else [4.0, 3.0],
        name="embedder",
        version="1",
    )
    writer = ScriptedModel("It rained.", name="writer")
    (run,) = evaluate(task, writer, roles={"embedder": embedder}, name="r")
    (record,) = run.samples()
    assert record.scores["similarity"].value == pytest.approx(24 / 25)
    with pytest.raises(ConfigurationError, match="--role embedder="):
        evaluate(task, writer, name="none")
    with pytest.raises(AbilityError, match="embed"):
        evaluate(
            task,
            writer,
            roles={"embedder": ScriptedModel("x", name="x", abilities=["generate"])},
            name="unable",
        )


def test_it_is_never_alone_for_names_and_numbers() -> None:
    with pytest.raises(UsageError, match="short-answer"):
        task_from_definition(definition(["similarity"], answer_type="name"))
    for scorers, kind in (
        (["similarity", "short-answer"], "name"),
        (["similarity"], "phrase"),
    ):
        assert task_from_definition(definition(scorers, answer_type=kind)).samples
