"""MiniCheck: both kinds of checkpoint by hand, and the documented cutting of long documents."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Classify
from support.pairs import PAIRS, failure, opened, supported

pytestmark = pytest.mark.torch

judge = partial(opened, "minicheck")


def two_sided(folder: Path, document: str, claim: str) -> float:
    """The first token's choice between "0" and "1", through transformers alone."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    network = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer(f"predict: {document}</s>{claim}", return_tensors="pt")[
        "input_ids"
    ]
    with torch.no_grad():
        logits = network(
            input_ids=tokens, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)
        ).logits[0, 0]
    no, yes = (
        tokenizer.encode(each, add_special_tokens=False)[0] for each in ("0", "1")
    )
    return float(logits[[no, yes]].softmax(-1)[1])


def test_the_first_token_is_read(judges: dict[str, Path]) -> None:
    wanted = [two_sided(judges["t5"], pair.premise, pair.hypothesis) for pair in PAIRS]
    assert max(wanted) - min(wanted) > 0.01
    assert supported(judge(judges["t5"]), PAIRS) == pytest.approx(wanted, abs=1e-5)
    assert supported(judge(judges["t5"], batch_size=1), PAIRS) == pytest.approx(
        wanted, abs=1e-5
    )


def test_a_classifier_reads_one_text(judges: dict[str, Path]) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    network = AutoModelForSequenceClassification.from_pretrained(
        judges["roberta"]
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(judges["roberta"])
    wanted = []
    for pair in PAIRS[:3]:
        tokens = tokenizer(f"{pair.premise}</s>{pair.hypothesis}", return_tensors="pt")[
            "input_ids"
        ]
        with torch.no_grad():
            wanted.append(float(network(input_ids=tokens).logits[0].softmax(-1)[1]))
    assert supported(judge(judges["roberta"]), PAIRS[:3]) == pytest.approx(
        wanted, abs=1e-5
    )


def test_documents_are_cut_by_words_at_sentences(judges: dict[str, Path]) -> None:
    parts = [
        "The river rises in the hills.",
        "A baker gets up at three o'clock.",
        "Iron melts at 1538 degrees.",
    ]
    claim = "Gold melts at 1064 degrees."
    wanted = max(two_sided(judges["t5"], part, claim) for part in parts)
    document = " ".join(parts)
    assert supported(
        judge(judges["t5"], chunk=7), [Classify(document, claim)]
    ) == pytest.approx([wanted], abs=1e-5)
    whole = two_sided(judges["t5"], document, claim)
    assert supported(
        judge(judges["t5"], chunk=19), [Classify(document, claim)]
    ) == pytest.approx([whole], abs=1e-5)


def test_the_documented_sizes_are_recorded(judges: dict[str, Path]) -> None:
    said = judge(judges["t5"]).describe()
    assert (said["window"], said["chunk_size"], said["chunk_unit"]) == (
        2048,
        500,
        "words",
    )
    said = judge(judges["roberta"]).describe()
    assert (said["window"], said["chunk_size"], said["chunk_unit"]) == (
        64,
        400,
        "tokens",
    )
    said = judge(judges["deberta"]).describe()
    assert (said["window"], said["chunk_size"], said["chunk_unit"]) == (
        2048,
        400,
        "tokens",
    )


def test_what_cannot_be_judged_is_said(judges: dict[str, Path]) -> None:
    assert "never cut" in failure(
        judge(judges["roberta"]), Classify("x", "The old mill. " * 40)
    )
    with pytest.raises(ConfigurationError, match="has 3 classes"):
        judge(judges["bert"]).load()
