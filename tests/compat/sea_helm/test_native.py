"""A dialect's corrected scores and the native tasks' scorer read the same answers alike, and so
do HRET's.
"""

from __future__ import annotations

from typing import Any

import pytest

from compat.sea_helm.scored import scored, sea_task
from evalwright.compat.hret.rules import rules_of
from evalwright.core.samples import Answer, Sample
from evalwright.scorers.choice import choice

F1 = ("src/metrics/f1_acc_metric.py", "F1AccMetric")
OPTIONS = ("Iisa ang ibig sabihin.", "Magkaiba ang ibig sabihin.")
SENTIMENTS = ("Positif", "Negatif", "Netral")


def native(
    text: str, choices: tuple[str, ...], gold: int, language: str
) -> tuple[float, float, float]:
    """Value, right class and read class of the native tasks' scorer."""
    sample = Sample("s", choices=choices, gold=(gold,), metadata={"language": language})
    score = choice(sample, Answer(text))
    return score.value, score.parts["gold"], score.parts["predicted"]


def dialect(
    texts: list[str], rows: list[dict[str, Any]], **task: Any
) -> list[tuple[float, float, float]]:
    """The same of SEA-HELM's task in corrected scoring."""
    _, scores = scored(sea_task(*F1, **task), rows, texts)
    return [
        (one.value, one.parts["gold"], one.parts["predicted"])
        for one in scores
        if one is not None
    ]


@pytest.mark.parametrize("label", ["A", "B"])
def test_letters_in_the_format_that_the_prompt_asks_for(label: str) -> None:
    texts = [
        "Sagot: A",
        "Sagot: B",
        "Sagot: (B)",
        "Sagot: **A**",
        "Sagot: C",
        "Sagot:",
        "",
        "Hindi ko alam.",
        "Sagot: A o B",
    ]
    row = {
        "label": label,
        "metadata": {},
        "prompts": [{"option_a": OPTIONS[0], "option_b": OPTIONS[1]}],
    }
    other = {**row, "label": "B" if label == "A" else "A"}
    there = dialect(
        [*texts, "Sagot: A"], [row] * len(texts) + [other], language="tl", tag="Sagot:"
    )[:-1]
    assert there == [native(text, OPTIONS, "AB".index(label), "tl") for text in texts]
    assert [read for _, _, read in there] == [0, 1, 1, 0, -1, -1, -1, -1, -1]


@pytest.mark.parametrize("gold", range(3))
def test_labels_in_the_format_that_the_prompt_asks_for(gold: int) -> None:
    texts = [
        "Jawaban: Positif",
        "Jawaban: negatif.",
        "Jawaban: **Netral**",
        "Netral",
        "Jawaban: Bahagia",
        "",
        "Jawaban: Positif atau Negatif",
    ]
    rows = [
        {"label": SENTIMENTS[gold], "metadata": {}, "prompts": [{"text": "?"}]}
        for _ in texts
    ]
    rows += [{**rows[0], "label": label} for label in SENTIMENTS]
    there = dialect([*texts, "", "", ""], rows, language="id", tag="Jawaban:")[
        : len(texts)
    ]
    labels = sorted(SENTIMENTS)
    for text, (value, right, read) in zip(texts, there, strict=True):
        here = native(text, SENTIMENTS, gold, "id")
        said = [
            labels.index(SENTIMENTS[int(place)]) if place >= 0 else -1
            for place in here[1:]
        ]
        assert [here[0], *said] == [value, right, read], text


def test_hrets_accuracy_is_over_all_rows_as_the_native_scorers_is() -> None:
    """A model that answers three of ten questions, all rightly, is right in three of ten."""
    choices = ("배추", "사과", "감자", "쌀")
    texts = [
        "정답: B",
        "사과입니다.",
        "②",
        "",
        "Z",
        "저는 음악을 좋아합니다.",
        "A 또는 B",
        "정답: ㄷ",
        "모르겠습니다.",
        "????",
    ]
    row = {"input": "다음 중 과일은?", "reference": "사과", "options": list(choices)}
    rows = [{**row, "prediction": text} for text in texts]
    metrics = rules_of("corrected").measure("string_match", {"mcqa": True}, rows, None)
    assert metrics["accuracy"] == pytest.approx(0.3)
    here = [native(text, choices, 1, "ko")[0] for text in texts]
    assert metrics["accuracy"] == pytest.approx(sum(here) / len(here))
