"""Names, files and hashes of lm_eval."""

from __future__ import annotations

import pytest

from compat.lm_eval.runs.lm_eval_files import RELEASED, read_lines
from evalwright.compat.lm_eval.runs.names import file_safe, our_kind, spelled, their_metric


@pytest.mark.parametrize(
    ("label", "kind", "scorer", "name"),
    [
        ("accuracy", "accuracy", {"kind": "choice", "options": {}}, "acc"),
        ("accuracy", "accuracy", {"kind": "choice", "options": {"normalise": "characters"}}, "acc_norm"),
        ("accuracy", "accuracy", {"kind": "choice", "options": {"normalise": "bytes"}}, "acc_bytes"),
        ("accuracy", "accuracy", {"kind": "exact-match", "options": {}}, "exact_match"),
        ("exact-match", "exact-match", {}, "exact_match"),
        ("word-perplexity", "word-perplexity", {}, "word_perplexity"),
        ("mean politeness", "mean", {}, "mean_politeness"),
        ("a, b", "mean", {}, "a_b"),
    ],
)
def test_their_names_of_metrics(label: str, kind: str, scorer: dict[str, object], name: str) -> None:
    assert their_metric(label, kind, scorer) == name


def test_our_names_of_metrics() -> None:
    assert [our_kind(name) for name in ("acc", "acc_norm", "exact_match", "bits_per_byte", "pass@1")] == [
        *("accuracy", "accuracy", "exact-match", "bits-per-byte", "pass@1")
    ]


def test_files_and_spelling() -> None:
    assert [file_safe(name) for name in ("a/b", "..", "a:b|c", "")] == ["a__b", "model", "a__b__c", "model"]
    row = read_lines(RELEASED, "pick")[0]
    assert spelled([[(float(row["resps"][0][0][0]), False)]]) == [row["resps"][0]]
