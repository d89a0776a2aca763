"""What a reply mentions: whole words and values, in its claim where it marks one."""

from __future__ import annotations

import pytest

from evalwright.core.samples import Answer, Sample
from evalwright.extend import bind_scorer, with_language_penalty


@pytest.mark.parametrize(
    ("text", "targets", "language", "value"),
    [
        ("The capital is Seoul, of course.", ("Seoul",), "en", 1),
        ("The capital is Seoul, of course.", ("eoul",), "en", 0),
        ("There were 1,000 of them.", ("1000",), "en", 1),
        ("There were 12 of them.", ("1",), "en", 0),
        ("Busan or Seoul. Answer: Busan", ("Seoul",), "en", 0),
        ("수도는 서울특별시입니다.", ("서울",), "ko", 1),
        ("수도는 서울입니다.", ("울",), "ko", 0),
        ("Busan", ("Seoul", "Busan"), "en", 1),
        ("Busan", (), "en", 0),
    ],
)
def test_values(
    text: str, targets: tuple[str, ...], language: str, value: float
) -> None:
    sample = Sample("0", targets=targets, metadata={"language": language})
    score = bind_scorer("mentions").function(sample, Answer(text))
    assert score.value == value  # type: ignore[union-attr]
    assert score.label == ("correct" if value else "incorrect")  # type: ignore[union-attr]


def test_a_penalty_on_a_scorer_of_ones_own() -> None:
    scorer = with_language_penalty(bind_scorer("mentions"), {"expected": "ko"})
    sample = Sample("0", targets=("Seoul",), metadata={"language": "en"})
    answer = Answer("The capital of the whole country is Seoul, of course.")
    score = scorer.function(sample, answer)
    assert (score.value, score.parts["before"]) == (0.0, 1.0)  # type: ignore[union-attr]
    assert scorer.options == {"language_penalty": {"expected": "ko"}}
