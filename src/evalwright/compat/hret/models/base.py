"""Model classes by name, and what a plug-in of a user derives from: a model, a judge, a reward
model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalwright.compat.hret.registry import Classes
from evalwright.compat.hret.row_samples import Given, Rows

MODEL_REGISTRY = Classes(
    "model",
    "Unknown model: {name}. Please register it in MODEL_REGISTRY.",
    ("generate_batch", "judge_batch", "score_batch"),
)
"""The model, judge and reward classes by their names."""

DEFAULT_TRIGGER = "Let's think step by step."


class BaseModel:
    """A model: `generate_batch(inputs, **options)` returns the same dicts with `prediction`, and
    what else it knows.

    cot_trigger, cot_parser: what is put after the prompt, and how a reply becomes (reasoning,
    answer), where the class does so.
    """

    def __init__(
        self,
        cot_trigger: str | None = DEFAULT_TRIGGER,
        cot_parser: Callable[[str], tuple[str, str]] | None = None,
        **kwargs: Any,
    ) -> None:
        self.cot_trigger = cot_trigger
        self.cot_parser = cot_parser

    def generate_batch(
        self, inputs: Rows, return_logits: bool = False, **kwargs: Any
    ) -> Rows:
        """The inputs with `prediction`; further fields are kept (`logits`, `chain_of_thought`,
        `finish_reason`, `error`).
        """
        raise NotImplementedError("Subclasses must implement generate_batch().")

    def _is_vision_input(self, item: Given) -> bool:
        return bool(self._extract_text_and_images(item)[1])

    def _extract_text_and_images(self, item: Given) -> tuple[str, list[Any] | None]:
        row_input = item.get("input", "")
        inner = row_input if isinstance(row_input, dict) else {}
        text = inner.get("text", "") if isinstance(row_input, dict) else str(row_input)
        return text, item["images"] if "images" in item else inner.get("images")


class BaseJudge:
    """A judge: `judge_batch(inputs)` returns its reply to each `input` as `prediction`, with
    `judge_score` where it gives numbers.
    """

    def __init__(self, **kwargs: Any) -> None:
        pass

    def judge_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The replies."""
        raise NotImplementedError("Subclasses must implement judge_batch().")


class BaseRewardModel:
    """A reward model: `score_batch(inputs)` adds `reward` to each input with its `prediction`; more
    is better.
    """

    def __init__(self, **kwargs: Any) -> None:
        pass

    def score_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The inputs with rewards."""
        raise NotImplementedError("Subclasses must implement score_batch().")


register_model = MODEL_REGISTRY.register
load_model = MODEL_REGISTRY.make
