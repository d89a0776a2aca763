"""The helpers of `lm_eval.models.utils_hf` that model classes of transformers import."""

from __future__ import annotations

import gc
from typing import Any, Literal

import torch
import transformers


def pad_and_concat(
    max_length: int,
    tensors: list[Any],
    padding_side: Literal["right", "left"] = "right",
) -> Any:
    """Stack rows of token ids, [n] or [1, n], into [rows, max_length], padded with 0."""
    assert padding_side in (
        "left",
        "right",
    ), f"padding_side={padding_side!r} must be 'left' or 'right'."
    rows = []
    for tensor in tensors:
        row = tensor.squeeze(0) if tensor.dim() == 2 else tensor
        missing = max(max_length - row.shape[0], 0)
        sides = (0, missing) if padding_side == "right" else (missing, 0)
        rows.append(torch.nn.functional.pad(row, sides))
    return torch.stack(rows)


def clear_torch_cache() -> None:
    """Free unused memory."""
    gc.collect()
    torch.cuda.empty_cache()


def get_dtype(dtype: Any) -> Any:
    """The torch dtype of a name such as "float16"; "auto" and dtypes are returned unchanged."""
    return (
        getattr(torch, dtype) if isinstance(dtype, str) and dtype != "auto" else dtype
    )


class MultiTokenEOSCriteria(transformers.StoppingCriteria):  # type: ignore[misc]
    """Stops generation when each row contains the stop string.

    For classes that call `generate()` of transformers; `hf/...` looks for stop strings itself.
    """

    def __init__(
        self,
        sequence: str,
        tokenizer: Any,
        initial_decoder_input_length: int,
        batch_size: int,
    ) -> None:
        self.initial_decoder_input_length = initial_decoder_input_length
        self.done_tracker = [False] * batch_size
        self.sequence = sequence
        self.tokenizer = tokenizer
        # Two more than its own tokens: the model may write the same text in others.
        self.sequence_id_len = (
            len(tokenizer.encode(sequence, add_special_tokens=False)) + 2
        )

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        """Whether all rows are done."""
        new_tokens = input_ids[:, self.initial_decoder_input_length :][
            :, -self.sequence_id_len :
        ]
        # Beams stand in rows of their own; as many as there are prompts are looked at, as in the
        # release.
        for row, text in enumerate(
            self.tokenizer.batch_decode(new_tokens)[: len(self.done_tracker)]
        ):
            self.done_tracker[row] = self.done_tracker[row] or self.sequence in text
        return all(self.done_tracker)


def stop_sequences_criteria(
    tokenizer: Any,
    stop_sequences: list[str],
    initial_decoder_input_length: int,
    batch_size: int,
) -> Any:
    """Build the criteria that stop generation at one of these strings."""
    return transformers.StoppingCriteriaList(
        [
            MultiTokenEOSCriteria(
                text, tokenizer, initial_decoder_input_length, batch_size
            )
            for text in stop_sequences
        ]
    )
