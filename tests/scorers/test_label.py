"""One of a fixed set of labels in a response."""

from __future__ import annotations

import pytest

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind

THAI = ("ปลอดภัย", "อันตราย")


@pytest.mark.parametrize(
    ("labels", "tag", "text", "read"),
    [
        (("Safe", "Harmful"), "Answer:", "It is harmful?\nAnswer: Safe.", "Safe"),
        (("Safe", "Harmful"), "Answer:", "Answer: Safer", "null"),
        (("Safe", "Harmful"), "Answer:", "Answer: Safe or Harmful", "null"),
        (("Safe", "Harmful"), "Answer:", "Answer: A", "null"),
        (("Safe", "Harmful"), "", "**harmful**", "Harmful"),
        (THAI, "คำตอบ:", "คำตอบ: อันตรายครับ", "อันตราย"),
        (THAI, "คำตอบ:", "คำตอบ：「ปลอดภัย」", "ปลอดภัย"),
        (("An toàn", "Có hại"), "Câu trả lời:", "câu trả lời: *có hại*", "Có hại"),
        (("Ya", "Tidak"), "Jawaban:", "Jawaban: ya, jawaban yang benar", "Ya"),
    ],
)
def test_reading(labels: tuple[str, ...], tag: str, text: str, read: str) -> None:
    scorer = bind("label", {"labels": list(labels), "tag": tag})
    score = scorer.function(Sample("s", targets=(labels[0],)), Answer(text))
    assert isinstance(score, Score) and score.label == read
    assert score.value == (read == labels[0])
    assert score.parts["predicted"] == (labels.index(read) if read in labels else -1)


def test_errors() -> None:
    for options in (
        {"labels": ["A"]},
        {"labels": ["A", "A"]},
        {"labels": "AB"},
        {"labels": ["A", "B"], "tag": 3},
    ):
        with pytest.raises(ConfigurationError):
            bind("label", options)
    with pytest.raises(ScoringError, match="no label of the task"):
        bind("label", {"labels": ["A", "B"]}).function(Sample("s", targets=("C",)), Answer("A"))
