"""Encoder-decoder models: every number against a straight forward pass of transformers, one
request at a time.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, Failure, ModelError
from evalwright.core.requests import Generate, LogLikelihood, RollingLogLikelihood
from evalwright.core.responses import Response
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import answers, engine_of
from support.tiny_models import make_two_sided_model

pytestmark = pytest.mark.torch

PAIRS = [
    ("Question: What is the capital of France? Answer:", " Paris"),
    ("Question: What is the capital of France? Answer:", " London is not"),
    ("Question: What is the capital of France? Answer:", " London is so"),
    ("Iron melts at ", "1538 degrees"),
    ("", "The river rises"),
    ("1 2 3 4 5 6 7 8 9 10 11 12 20 30 50 100 1000", " 1999"),
    ("gold", "e"),
]
PROMPTS = [
    "The river rises in the hills above the town and runs past",
    "Iron",
    "Question: What is the capital of France? Answer:",
    "1 2 3 4 5",
]


@pytest.fixture(scope="module")
def two_sided(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pytest.importorskip("torch").set_num_threads(1)
    root = tmp_path_factory.mktemp("two-sided")
    return {
        "t5": make_two_sided_model(root / "t5", "t5"),
        "bart": make_two_sided_model(root / "bart", "bart"),
        "forced": make_two_sided_model(root / "forced", "bart", forced_bos=True),
    }


@pytest.fixture(scope="module", params=["t5", "bart"])
def model(
    request: pytest.FixtureRequest, two_sided: dict[str, Path]
) -> TransformersModel:
    return TransformersModel(str(two_sided[request.param]), device="cpu", max_tokens=20)


def straight(folder: str) -> tuple[Any, Any]:
    """Model and tokenizer as transformers loads them, without ours."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    return AutoModelForSeq2SeqLM.from_pretrained(
        folder
    ).eval(), AutoTokenizer.from_pretrained(folder)


def log_likelihood(
    reference: Any, source: list[int], labels: list[int]
) -> tuple[float, bool]:
    """Transformers shifts the labels itself, so where the decoder starts is its own matter here."""
    import torch

    with torch.no_grad():
        logits = reference(
            input_ids=torch.tensor([source]), labels=torch.tensor([labels])
        ).logits[0]
    values = logits.log_softmax(-1)[range(len(labels)), labels]
    return float(values.sum()), logits.argmax(-1).tolist() == labels


def test_log_likelihoods_are_those_of_a_straight_forward(
    model: TransformersModel,
) -> None:
    # so that not every pair is unlikely
    first = answers(model, [Generate("Iron", max_tokens=1)])[0].text
    found = answers(
        model, [LogLikelihood(*pair) for pair in (*PAIRS, ("Iron", first or "x"))]
    )
    reference, tokenizer = straight(model._source.where)
    for (context, continuation), response in zip(
        (*PAIRS, ("Iron", first or "x")), found, strict=True
    ):
        kept = context.rstrip()
        source = tokenizer.encode(kept)
        if not kept:
            source = [
                tokenizer.eos_token_id
                if tokenizer.bos_token_id is None
                else tokenizer.bos_token_id
            ]
        labels = tokenizer.encode(
            context[len(kept) :] + continuation, add_special_tokens=False
        )
        value, greedy = log_likelihood(reference, source, labels)
        assert response.log_likelihood == pytest.approx(value, abs=1e-4)
        assert (response.is_greedy, response.tokens_scored) == (greedy, len(labels))
        alone = answers(model, [LogLikelihood(context, continuation)])[0]
        assert alone.log_likelihood == pytest.approx(response.log_likelihood, abs=1e-4)
        assert response.usage.input_tokens == len(source) + len(labels)


def test_a_context_that_is_too_long_loses_its_left(model: TransformersModel) -> None:
    text = "The river rises in the hills above the town. " * 20
    [response] = answers(model, [LogLikelihood(text, " It runs")])
    reference, tokenizer = straight(model._source.where)
    source = tokenizer.encode(text.rstrip())[-128:]
    labels = tokenizer.encode(
        text[len(text.rstrip()) :] + " It runs", add_special_tokens=False
    )
    assert response.finish_reason == "truncated"
    assert response.log_likelihood == pytest.approx(
        log_likelihood(reference, source, labels)[0], abs=1e-4
    )
    [failed] = answers(model, [LogLikelihood("Iron", text)])
    assert isinstance(failed, Failure)
    assert "has 128" in failed.message


@pytest.mark.parametrize(
    "text", ["", "Iron melts at 1538 degrees", "Heat moves to the cold one. " * 30]
)
def test_rolling_puts_the_text_after_the_prefix_token(
    model: TransformersModel, text: str
) -> None:
    [response] = answers(model, [RollingLogLikelihood(text)])
    reference, tokenizer = straight(model._source.where)
    prefix = (
        tokenizer.eos_token_id
        if tokenizer.bos_token_id is None
        else tokenizer.bos_token_id
    )
    tokens = tokenizer.encode(text, add_special_tokens=False)
    expected = 0.0
    for start in range(0, len(tokens), 128):
        labels = tokens[start : start + 128]
        left = [prefix, *tokens[:start]]
        # Of 128 places, what the targets do not need is left context, one token at least.
        source = left[-(128 - len(labels) + 1) :]
        expected += log_likelihood(reference, source, labels)[0]
    assert response.tokens_scored == len(tokens)
    assert response.log_likelihood == pytest.approx(expected, rel=1e-5, abs=1e-4)


def greedy_by_hand(
    reference: Any, source: list[int], starts: list[int], count: int, end: int
) -> list[int]:
    import torch

    written: list[int] = []
    while len(written) < count and written[-1:] != [end]:
        with torch.no_grad():
            logits = reference(
                input_ids=torch.tensor([source]),
                decoder_input_ids=torch.tensor([[*starts, *written]]),
            ).logits
        written.append(int(logits[0, -1].argmax()))
    return written


@pytest.mark.parametrize("kind", ["t5", "bart", "forced"])
def test_greedy_batches_equal_one_by_one(kind: str, two_sided: dict[str, Path]) -> None:
    model = TransformersModel(str(two_sided[kind]), device="cpu")
    requests = [
        Generate(prompt, max_tokens=8 + 3 * i) for i, prompt in enumerate(PROMPTS)
    ]
    together = answers(model, requests)
    assert together == [answers(model, [request])[0] for request in requests]
    reference, tokenizer = straight(str(two_sided[kind]))
    starts = [reference.config.decoder_start_token_id]
    if kind == "forced":
        starts.append(tokenizer.bos_token_id)
    for request, response in zip(requests, together, strict=True):
        assert request.max_tokens is not None
        source = tokenizer.encode(request.prompt)
        end = tokenizer.eos_token_id
        written = greedy_by_hand(reference, source, starts, request.max_tokens, end)
        assert response.usage.output_tokens == len(written)
        assert response.usage.input_tokens == len(source)
        assert response.text == tokenizer.decode(written, skip_special_tokens=True)
        assert response.finish_reason == ("stop" if written[-1] == end else "length")
    assert len({response.text for response in together}) > 1


def test_samples_depend_on_the_request_alone_and_follow_the_distribution(
    model: TransformersModel,
) -> None:
    import torch

    draws = [
        Generate("Iron", max_tokens=1, temperature=1.0, seed=5, draw=n)
        for n in range(600)
    ]
    found = answers(model, draws)
    assert answers(model, draws[7:8])[0] == found[7]
    reference, tokenizer = straight(model._source.where)
    with torch.no_grad():
        start = torch.tensor([[reference.config.decoder_start_token_id]])
        logits = reference(
            input_ids=torch.tensor([tokenizer.encode("Iron")]), decoder_input_ids=start
        ).logits
    probabilities = logits[0, -1].softmax(-1)
    token = int(probabilities.argmax())
    share = float(probabilities[token])
    text = "" if token == tokenizer.eos_token_id else tokenizer.decode([token])
    expected = sum(
        float(probabilities[each])
        for each in range(len(tokenizer))
        if (tokenizer.decode([each]) if each not in tokenizer.all_special_ids else "")
        == text
    )
    assert share <= expected + 1e-6
    count = Counter(response.text for response in found)[text]
    assert (
        abs(count / 600 - expected)
        < 4 * (expected * (1 - expected) / 600) ** 0.5 + 1e-3
    )


def test_lengths(two_sided: dict[str, Path]) -> None:
    short = TransformersModel(str(two_sided["bart"]), device="cpu", max_length=16)
    refused, full = answers(
        short,
        [Generate("1 2 3 4 5 " * 20, max_tokens=4), Generate("Iron", max_tokens=400)],
    )
    assert "encoder takes 16" in refused.message
    assert full.usage.output_tokens <= 16
    # T5 knows distances, which may be longer than those of its training.
    long = TransformersModel(str(two_sided["t5"]), device="cpu", max_length=500)
    assert isinstance(
        answers(long, [LogLikelihood("Iron melts " * 30, " b")])[0], Response
    )
    with pytest.raises(ConfigurationError, match="more than the 128"):
        TransformersModel(str(two_sided["bart"]), device="cpu", max_length=500)


def test_the_tree_is_never_taken(two_sided: dict[str, Path]) -> None:
    model = TransformersModel(str(two_sided["t5"]), device="cpu")
    model.check()
    model.load()
    assert model.describe()["scoring"] == {"path": "encoder-decoder"}
    with pytest.raises(ModelError, match="an encoder and a decoder"):
        TransformersModel(str(two_sided["t5"]), device="cpu", scoring="tree").load()


def test_batches_of_one_row_and_logits_that_are_no_numbers(
    two_sided: dict[str, Path],
) -> None:
    import torch

    requests: list[Any] = [LogLikelihood(*pair) for pair in PAIRS]
    requests += (Generate(p, max_tokens=5) for p in PROMPTS)
    transformers_model = TransformersModel(
        str(two_sided["bart"]), device="cpu", batch_size=1
    )
    many = TransformersModel(str(two_sided["bart"]), device="cpu", batch_size=3)
    for left, right in zip(
        answers(transformers_model, requests), answers(many, requests), strict=True
    ):
        assert left.text == right.text
        if left.log_likelihood is not None:
            assert left.log_likelihood == pytest.approx(right.log_likelihood, abs=1e-4)
    with torch.no_grad():
        engine_of(transformers_model).loaded.model.get_output_embeddings().weight.fill_(
            float("nan")
        )
    broken = answers(
        transformers_model, [LogLikelihood("a", " b"), Generate("a", max_tokens=3)]
    )
    assert all(isinstance(each, Failure) and "dtype" in each.message for each in broken)
