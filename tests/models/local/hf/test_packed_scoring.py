"""Scores with packed weights: from many tokens on, compared before use, and equal to plain ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.requests import Generate
from evalwright.models.local.answering import PairScore
from evalwright.models.local.hardware import machine
from evalwright.models.local.hf.transformers_model import TransformersModel
from evalwright.models.local.tokens import Pair
from support.local_models import engine_of
from support.tiny_models import make_tiny_model

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from evalwright.models.local.hf import packed_products, tree_scoring  # noqa: E402
from evalwright.models.local.hf.batching import (  # noqa: E402
    BatchRunner,
    packed_budget,
)
from evalwright.models.local.hf.packed_products import (  # noqa: E402
    PackedProducts,
    are_supported,
)
from evalwright.models.local.hf.reading import LogitReader, PlainScorer  # noqa: E402
from evalwright.models.local.hf.tree_forward import TreeForward  # noqa: E402
from evalwright.models.local.hf.tree_scoring import TreeScorer  # noqa: E402

needs_packing = pytest.mark.skipif(
    not are_supported(), reason="this processor or torch has no packed products"
)


class CountedProducts(PackedProducts):
    """Counts the passes with packed weights, and can make them wrong."""

    passes = 0
    error = 0.0

    @contextmanager
    def applied(self, head: bool = True) -> Iterator[None]:
        assert not head  # scoring reads the head in blocks of the plain weights
        self.passes += self.active
        with super().applied(head):
            for module in self._body if self.error and self.active else ():
                forward = module.__dict__["forward"]
                module.__dict__["forward"] = lambda states, forward=forward: (
                    forward(states) * (1 + self.error)
                )
            yield


@pytest.fixture
def model(tmp_path: Path) -> Any:
    from transformers import AutoModelForCausalLM

    folder = make_tiny_model(tmp_path / "llama", "llama", context=512)
    return AutoModelForCausalLM.from_pretrained(folder).eval()


def endings(model: Any, questions: int) -> list[Pair]:
    rng = random.Random(0)

    def tokens(count: int) -> list[int]:
        return rng.choices(range(3, model.config.vocab_size), k=count)

    pairs: list[Pair] = []
    for _ in range(questions):
        context = tokens(60)
        pairs += [(context, tokens(length)) for length in (3, 5, 6, 9)]
    return pairs


def scorers(model: Any) -> tuple[TreeScorer, PlainScorer, CountedProducts]:
    reader = LogitReader(model, "cpu")
    plain = PlainScorer(reader, BatchRunner(None, 4096), "cpu")
    products = CountedProducts(model, "cpu", 1 << 30)
    forward = TreeForward(model, reader, "cpu")
    scorer = TreeScorer(
        forward,
        reader,
        plain,
        tokens=1024,
        rows=None,
        stored=1 << 30,
        name="tiny",
        products=products,
    )
    return scorer, plain, products


def assert_agree(scorer: TreeScorer, plain: PlainScorer, pairs: list[Pair]) -> None:
    expected = dict(plain.score(pairs))
    scores = dict(scorer.score(pairs))
    assert scores.keys() == expected.keys()
    for index, score in scores.items():
        reference = expected[index]
        assert isinstance(score, PairScore)
        assert isinstance(reference, PairScore)
        difference = abs(score.log_likelihood - reference.log_likelihood)
        assert difference <= 2e-6 * score.tokens
        assert score.is_greedy == reference.is_greedy


@needs_packing
def test_packed_weights_are_used_from_many_tokens_on(model: Any) -> None:
    scorer, plain, products = scorers(model)
    few = endings(model, 4)
    assert_agree(scorer, plain, few)
    assert products.passes == 0
    assert_agree(scorer, plain, endings(model, 60))
    passes = products.passes
    assert passes > 0
    # Once packed, they are used for few tokens too.
    assert_agree(scorer, plain, few)
    assert products.passes > passes
    assert scorer.describe()["attention"] == "cascade"


@needs_packing
def test_wrong_packed_products_are_given_up_alone(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_scoring, "_MIN_PACKED_TOKENS", 1)
    scorer, plain, products = scorers(model)
    products.error = 0.01
    assert_agree(scorer, plain, endings(model, 4))
    assert products.passes > 0
    assert not products.active
    assert scorer.describe()["attention"] == "cascade"


class ForeignWeight(torch.Tensor):  # type: ignore[misc, name-defined]
    """A weight as quantisation libraries have them: a tensor of its own kind, called float32."""

    @staticmethod
    def __new__(cls, whole: Any) -> Any:
        weight = torch.Tensor._make_wrapper_subclass(
            cls, whole.shape, dtype=torch.float32
        )
        weight.whole = whole
        return weight

    @classmethod
    def __torch_dispatch__(
        cls, operation: Any, types: Any, arguments: Any = (), keywords: Any = None
    ) -> Any:
        if operation is torch.ops.aten.detach.default:
            return cls(arguments[0].whole)
        plain = [
            argument.whole if isinstance(argument, cls) else argument
            for argument in arguments
        ]
        return operation(*plain, **(keywords or {}))


@needs_packing
def test_weights_of_another_kind_stay_as_they_are(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_scoring, "_MIN_PACKED_TOKENS", 1)
    foreign = model.model.layers[0].mlp.up_proj
    weight = ForeignWeight(foreign.weight.detach())
    foreign.weight = torch.nn.Parameter(weight, requires_grad=False)
    scorer, plain, products = scorers(model)
    assert_agree(scorer, plain, endings(model, 4))
    assert products.passes > 0 and products.active
    linear = [module for module in model.modules() if type(module) is torch.nn.Linear]
    plain_bytes = sum(layer.weight.numel() * 4 for layer in linear)
    head_bytes = model.lm_head.weight.nbytes  # which scoring does not pack
    assert products.packed_bytes == plain_bytes - head_bytes - weight.numel() * 4


@needs_packing
def test_a_torch_that_cannot_pack_costs_no_answer(
    model: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(layer: Any) -> Any:
        return torch.ops.mkldnn._reorder_linear_weight(layer.weight, "other arguments")

    monkeypatch.setattr(tree_scoring, "_MIN_PACKED_TOKENS", 1)
    monkeypatch.setattr(packed_products, "_packed_forward", refuse)
    scorer, plain, products = scorers(model)
    assert_agree(scorer, plain, endings(model, 4))
    assert not products.active and products.packed_bytes == 0
    assert "without packed weights" in caplog.text


@needs_packing
def test_the_record_says_what_is_packed(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "llama", "llama", context=512)
    model = TransformersModel(str(folder), device="cpu")
    assert "packed_weight_bytes" not in model.describe()
    list(model.answer_batch([Generate("Rivers", max_tokens=2)]))
    packed_bytes = model.describe()["packed_weight_bytes"]
    assert packed_bytes == engine_of(model)._products.packed_bytes > 0
    model.unload()
    assert model.describe()["packed_weight_bytes"] == packed_bytes


def test_processes_of_one_model_share_the_memory_for_packing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: 8 << 30)
    assert packed_budget("cpu") == 2 << 30
    monkeypatch.setattr(machine, "_sharers", 1)  # so that it is restored
    machine.share_memory(4)
    assert packed_budget("cpu") == 1 << 29
    assert packed_budget("cpu", 1 << 30) == 1 << 28


def test_a_pass_on_a_cpu_has_tokens_by_its_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = []
    for threads in (1, 6, 64):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        limits.append(tree_scoring.tokens_of_pass("cpu"))
    assert limits == [1024, 1536, 2048]
    assert tree_scoring.tokens_of_pass("cuda:0") > 1 << 40
