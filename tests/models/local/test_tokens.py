"""The rules of tokens, with a real BPE tokenizer and over arbitrary texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.models.local.tokens import (
    DEFAULT_MAX_TOKENS,
    DoesNotFit,
    TokenRules,
    encode_pair,
    encode_text,
    rolling_pairs,
    rolling_windows,
    room_for_answer,
    rules_for,
    truncate_pair,
    with_room,
)

BOS = 0
EOS = 1


class BytePairs:
    """A byte-level BPE of the `tokenizers` library; `added` are the special tokens around a
    text.
    """

    def __init__(self, added: str) -> None:
        from tokenizers import (
            Tokenizer,
            decoders,
            models,
            pre_tokenizers,
            processors,
            trainers,
        )

        self.core: Any = Tokenizer(models.BPE())
        # Without splitting at words, merges reach over spaces, which makes joins as bad as they can
        # be.
        self.core.pre_tokenizer = pre_tokenizers.ByteLevel(
            add_prefix_space=False, use_regex=False
        )
        self.core.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<s>", "</s>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        self.core.train_from_iterator(
            ["the cat sat on the mat, the cat ran. A: yes B: no ab abc abcd"] * 3,
            trainer,
        )
        self.core.post_processor = processors.TemplateProcessing(
            single=added, special_tokens=[("<s>", BOS), ("</s>", EOS)]
        )

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return list(self.core.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool) -> str:
        return str(
            self.core.decode(list(tokens), skip_special_tokens=skip_special_tokens)
        )


@lru_cache
def encoder(added: str = "<s> $A") -> BytePairs:
    return BytePairs(added)


def rules(added: str = "<s> $A", **changes: Any) -> TokenRules:
    return rules_for(
        encoder(added),
        **{"bos_token": BOS, "eos_token": EOS, "max_length": 16, **changes},
    )


TEXT = st.text(st.sampled_from("abcd the.\n é"), max_size=30)


@given(TEXT, TEXT, st.sampled_from(["$A", "<s> $A", "<s> $A </s>"]))
def test_a_pair_is_the_joined_text_cut_in_two(
    context: str, continuation: str, added: str
) -> None:
    if context.rstrip() == context and not continuation:
        with pytest.raises(DoesNotFit, match="empty"):
            encode_pair(encoder(added), rules(added), context, continuation)
        return
    before, scored = encode_pair(encoder(added), rules(added), context, continuation)
    whole = encoder().encode(context + continuation, False)
    assert before
    assert scored
    assert [token for token in before + scored if token != BOS] == whole
    assert (before + scored).count(BOS) <= 1
    assert EOS not in scored
    # Everything of the continuation is scored: what stands before the cut is part of the context.
    kept = context.rstrip()
    assert len(encoder().decode(before, True)) <= len(kept)
    alone = encode_text(encoder(added), rules(added), kept) if kept else []
    if (
        alone
        and (before + scored)[: len(alone)] == alone
        and len(before + scored) > len(alone)
    ):
        assert before == alone, (
            "where the context's tokens are a prefix, the cut is after them"
        )


def test_an_empty_context_is_the_prefix_token() -> None:
    plain = encoder().encode("sat", False)
    assert encode_pair(encoder(), rules(), "", "sat") == ([BOS], plain)
    assert encode_pair(encoder(), rules(bos_token=None), "", "sat") == ([EOS], plain)
    assert encode_pair(encoder(), rules(), "", "<s>sat") == ([BOS], plain)
    with pytest.raises(DoesNotFit, match="neither a BOS nor an EOS"):
        encode_pair(encoder(), rules(bos_token=None, eos_token=None), "", "sat")


def test_a_token_over_the_join_is_scored_whole() -> None:
    plain = encoder("$A")
    longest = max(
        (
            plain.decode([token], False)
            for token in range(2, plain.core.get_vocab_size())
        ),
        key=len,
    )
    word = plain.encode(longest, False)
    assert len(word) == 1
    assert len(longest) >= 4
    # Published code scores nothing here: the context alone has as many tokens as the whole, or
    # more.
    assert encode_pair(
        plain, rules("$A"), longest[:2].rstrip(), longest[len(longest[:2].rstrip()) :]
    ) == (
        [BOS],
        word,
    )
    assert encode_pair(encoder(), rules(), longest[:2], longest[2:]) == ([BOS], word)


def test_no_second_bos_and_no_eos_at_the_end() -> None:
    both = encoder("<s> $A </s>")
    assert rules("<s> $A </s>").trailing == 1
    assert encode_text(both, rules("<s> $A </s>"), "<s>the cat") == [
        BOS,
        *both.encode("the cat", False),
    ]
    assert encode_text(both, rules("<s> $A </s>"), "the cat") == [
        BOS,
        *both.encode("the cat", False),
    ]
    plain = encoder("$A")
    assert encode_text(plain, rules("$A"), "the cat") == plain.encode("the cat", False)
    assert encode_text(plain, rules("$A", add_bos=True), "the cat")[0] == BOS
    assert encode_text(plain, rules("$A", add_bos=True), "<s>the cat").count(BOS) == 1
    inner = rules(add_bos=True).without_special_tokens()
    assert encode_text(encoder(), inner, "the cat") == plain.encode("the cat", False)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40),
    st.lists(st.integers(0, 9), min_size=1, max_size=40),
    st.integers(1, 50),
)
def test_truncation_keeps_the_right_end(
    context: list[int], continuation: list[int], length: int
) -> None:
    if len(continuation) > length:
        with pytest.raises(DoesNotFit, match="cannot be scored in one piece"):
            truncate_pair(context, continuation, length)
        return
    before, scored = truncate_pair(context, continuation, length)
    assert scored == continuation
    assert before
    assert before + scored == (context + continuation)[-(length + 1) :]


@given(st.lists(st.integers(1, 99), max_size=80), st.integers(1, 20))
def test_windows_score_every_token_once_with_all_the_context_that_fits(
    tokens: list[int], length: int
) -> None:
    windows = rolling_windows(tokens, 0, length)
    assert [target for _, targets in windows for target in targets] == tokens
    padded = [0, *tokens]
    end = 0
    for inputs, targets in windows:
        end += len(targets)
        assert len(targets) <= len(inputs) <= length
        assert inputs == padded[max(0, end - length) : end]


@given(TEXT)
def test_rolling_pairs_score_the_text_and_not_the_bos(text: str) -> None:
    pairs = rolling_pairs(encoder(), rules(max_length=5), text)
    assert pairs == rolling_pairs(encoder(), rules(max_length=5), "<s>" + text)
    assert [token for _, scored in pairs for token in scored] == encoder().encode(
        text, False
    )
    for context, scored in pairs:
        assert context
        assert len(context) + len(scored) - 1 <= 5


def test_room_for_an_answer() -> None:
    assert room_for_answer(10, None, 4096) == DEFAULT_MAX_TOKENS
    assert room_for_answer(10, 20, 4096) == 20
    assert room_for_answer(10, 20, 16) == 6
    with pytest.raises(DoesNotFit, match="no room for an answer") as caught:
        room_for_answer(16, 20, 16)
    assert caught.value.as_failure().party == "model"
    with pytest.raises(DoesNotFit, match="max_tokens is 0"):
        room_for_answer(1, 0, 16)


def test_published_rules() -> None:
    own = rules(max_length=16)
    published = replace(rules(max_length=16), published=True)
    whole = encoder().encode("the cat sat", True)
    assert [
        token
        for _, scored in rolling_pairs(encoder(), published, "the cat sat")
        for token in scored
    ] == whole
    assert whole[0] == BOS
    prompt = list(range(20))
    assert with_room(prompt, 6, own) == prompt
    assert with_room(prompt, 6, published) == prompt[-10:]
    assert with_room(prompt[:10], 6, published) == prompt[:10]
    assert with_room(prompt, 16, published) == prompt, (
        "no room at all: refused by room_for_answer"
    )
    # A token spans the join: what stands behind as many tokens as the context has is scored.
    whole = encode_text(encoder(), own, "the cat sat")
    context = encode_text(encoder(), own, "the c")
    assert whole[: len(context)] != context
    assert encode_pair(encoder(), published, "the c", "at sat") == (
        context,
        whole[len(context) :],
    )
    assert encode_pair(encoder(), own, "the c", "at sat") == (whole[:1], whole[1:])
