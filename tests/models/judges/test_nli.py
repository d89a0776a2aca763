"""Sequence classifiers as judges: the right class, by hand and in batches; long premises in
chunks; what does not fit.
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Classify
from evalwright.core.sentences import sentences
from support.pairs import PAIRS, failure, opened, supported

pytestmark = pytest.mark.torch

judge = partial(opened, "nli")


def logits(folder: Path, premise: str, hypothesis: str | None) -> Any:
    """One input through transformers alone."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(premise, hypothesis, return_tensors="pt")
    if network.config.model_type != "bert":
        inputs.pop("token_type_ids", None)
    with torch.no_grad():
        return network(**inputs).logits[0].double()


def probability(folder: Path, pair: Classify, place: int) -> float:
    return float(logits(folder, pair.premise, pair.hypothesis).softmax(-1)[place])


@pytest.mark.parametrize(("kind", "place"), [("bert", 0), ("deberta", 1)])
def test_the_class_is_found_by_its_name(
    judges: dict[str, Path], kind: str, place: int
) -> None:
    pairs = PAIRS[:4]
    wanted = [probability(judges[kind], pair, place) for pair in pairs]
    assert supported(judge(judges[kind]), pairs) == pytest.approx(wanted, abs=1e-5)
    assert supported(judge(judges[kind], batch_size=1), pairs) == pytest.approx(
        wanted, abs=1e-5
    )


def test_a_class_can_be_named_and_classes_that_say_nothing_are_listed(
    judges: dict[str, Path],
) -> None:
    wanted = [probability(judges["bert"], pair, 1) for pair in PAIRS[:2]]
    for label in ("Neutral", 1):
        assert supported(
            judge(judges["bert"], label=label), PAIRS[:2]
        ) == pytest.approx(wanted, abs=1e-5)
    with pytest.raises(ConfigurationError, match="Its classes: 0 = 0, 1 = 1"):
        judge(judges["roberta"])
    with pytest.raises(
        ConfigurationError,
        match=r"'maybe'.*0 = entailment, 1 = neut",
    ):
        judge(judges["bert"], label="maybe")


def test_one_logit_is_a_sigmoid(judges: dict[str, Path]) -> None:
    wanted = [
        float(logits(judges["single"], pair.premise, pair.hypothesis).sigmoid()[0])
        for pair in PAIRS[:3]
    ]
    assert supported(judge(judges["single"]), PAIRS[:3]) == pytest.approx(
        wanted, abs=1e-5
    )


def test_a_decoder_reads_the_prompt_and_needs_no_padding_token(
    judges: dict[str, Path],
) -> None:
    texts = [
        f"Determine if the hypothesis is true given the premise?\n\nPremise: {p.premise}\n\nHypothesis: {p.hypothesis}"
        for p in PAIRS
    ]
    wanted = [
        float(logits(judges["decoder"], text, None).softmax(-1)[1]) for text in texts
    ]
    assert max(wanted) - min(wanted) > 0.05
    assert supported(judge(judges["decoder"], prompt="hhem"), PAIRS) == pytest.approx(
        wanted, abs=1e-5
    )


def test_a_prompt_of_ones_own(judges: dict[str, Path]) -> None:
    pair = Classify("a {hypothesis} in braces", "b")
    wanted = logits(judges["decoder"], "b <- a {hypothesis} in braces", None).softmax(
        -1
    )[1]
    found = supported(
        judge(judges["decoder"], prompt="{hypothesis} <- {premise}"), [pair]
    )
    assert found == pytest.approx([float(wanted)], abs=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_long_premise_is_cut_at_sentences_and_the_best_chunk_counts(
    judges: dict[str, Path], kind: str
) -> None:
    from transformers import AutoTokenizer

    folder = judges[kind]
    arguments = {"label": 1}
    tokenizer = AutoTokenizer.from_pretrained(folder)
    premise = (
        "The river rises in the hills above the town and runs past the old mill. In spring the water is high. "
        "A baker gets up at three o'clock, when the street is dark. She asked him whether the train had left."
    )
    hypothesis = "The water is high."
    # By brute force: as many whole sentences as fit, again and again.
    parts: list[str] = []
    for sentence in sentences(premise):
        joined = f"{parts[-1]} {sentence}" if parts else sentence
        if parts and len(tokenizer(joined, hypothesis)["input_ids"]) <= 64:
            parts[-1] = joined
        else:
            parts.append(sentence)
    assert len(parts) > 1
    wanted = max(probability(folder, Classify(part, hypothesis), 1) for part in parts)
    found = judge(folder, **arguments)
    assert supported(found, [Classify(premise, hypothesis)]) == pytest.approx(
        [wanted], abs=1e-5
    )
    assert found.describe()["window"] == 64
    assert "never cut" in failure(found, Classify("x", premise))
    assert "chunk=auto" in failure(
        judge(folder, chunk="none", **arguments), Classify(premise, hypothesis)
    )


def test_what_is_no_classifier_is_said(
    judges: dict[str, Path], hhem: tuple[Path, Any]
) -> None:
    with pytest.raises(ConfigurationError, match="not a sequence classifier"):
        judge(judges["t5"])
    with pytest.raises(ConfigurationError, match="name it hhem"):
        judge(hhem[0])


def test_the_record_says_which_class_is_meant_and_is_no_label_of_the_model(
    judges: dict[str, Path],
) -> None:
    said = judge(judges["bert"]).describe()
    assert (said["classes"], said["supported_class"]) == (
        ["entailment", "neutral", "contradiction"],
        "entailment",
    )
    assert "label" not in said
    assert (
        judge(judges["bert"]).fingerprint
        != judge(judges["bert"], label="neutral").fingerprint
    )


def test_a_checkpoint_without_its_head_is_refused(
    judges: dict[str, Path], tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "headless"
    shutil.copytree(judges["bert"], folder)
    weights = load_file(folder / "model.safetensors")
    save_file(
        {
            name: tensor
            for name, tensor in weights.items()
            if not name.startswith("classifier")
        },
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(
        ConfigurationError,
        match=r"BertForSequenceClassification.*classifier",
    ):
        judge(folder).load()


def test_a_tokenizer_of_another_model_is_refused(
    judges: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "small"
    shutil.copytree(judges["bert"], folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["added_tokens"].append(
        {**tokenizer["added_tokens"][0], "id": 5000, "content": "[EXTRA]"}
    )
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ConfigurationError, match="do not match"):
        judge(folder).load()


def test_a_value_that_is_no_number_is_a_failure(judges: dict[str, Path]) -> None:
    found: Any = judge(judges["bert"])
    found.load()
    found._network._model.classifier.weight.data.fill_(float("nan"))
    assert "no finite number" in failure(found, PAIRS[0])
