"""An answer ends at the first token that completes a stop string, whatever way the tokens cut
the text.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.requests import Generate
from support.tiny_models import Kind, make_tokenizer

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from evalwright.models.local.answering import Job  # noqa: E402
from evalwright.models.local.hf.loading import HubEncoder  # noqa: E402
from evalwright.models.local.writing import AnswerWriter, Pieces  # noqa: E402


@cache
def encoder(kind: Kind) -> HubEncoder:
    return HubEncoder(make_tokenizer(kind))


@cache
def metaspace() -> HubEncoder:
    """A tokenizer whose decoder drops the space of the first token, as SentencePiece's do."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<s>", "▁", "▁a", "a", "▁b", "b", "▁ab", "\n", ".", "▁."]
    core = Tokenizer(models.BPE({word: place for place, word in enumerate(words)}, []))
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.decoder = decoders.Metaspace()
    return HubEncoder(PreTrainedTokenizerFast(tokenizer_object=core, bos_token="<s>"))


@given(st.data())
def test_the_first_token_that_completes_a_stop_string_ends(data: st.DataObject) -> None:
    found: Any = data.draw(
        st.sampled_from([encoder("llama"), encoder("gpt2"), metaspace()])
    )
    size = len(found.tokenizer)
    tokens = data.draw(
        st.lists(st.integers(3 if size > 20 else 1, size - 1), min_size=1, max_size=24)
    )
    text = found.decode(tokens, False)
    pieces = [text[i : i + n] for i in range(len(text)) for n in (1, 2, 4)]
    some = st.sampled_from([*pieces, "é", " ", "\n\n", "東"])
    stops = data.draw(
        st.lists(some.filter(lambda stop: "�" not in stop), min_size=1, max_size=2)
    )
    job = Job([1], len(tokens), Generate("x", stop=tuple(stops)))
    writer = AnswerWriter(found, frozenset(), job, Pieces(found))
    expected = next(
        (
            n
            for n in range(1, len(tokens) + 1)
            if any(stop in found.decode(tokens[:n], False) for stop in stops)
        ),
        None,
    )
    for place, token in enumerate(tokens, 1):
        response = writer.add(token)
        if place == expected:
            assert response is not None
            assert response.finish_reason == "stop"
            assert not any(stop in response.text for stop in stops)
            return
        if place < len(tokens):
            assert response is None
    assert expected is None
    assert response is not None
    assert response.finish_reason == "length"
