"""Changed texts: parts make the whole, nothing appears that was not there, and only words and
key decide.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import DatasetError, TaskError
from evalwright.core.sentences import sentences
from evalwright.tasks.transforms import (
    first_part,
    last_part,
    masked_words,
    shuffled_sentences,
    without_sentences,
)
from tasks.conftest import Load

TEXT = "One two three. Four five six! Seven eight nine? Ten, (eleven) twelve."
words = st.lists(
    st.sampled_from(["a", "Bb.", "(c)", "1,5", "d-e"]), min_size=1, max_size=30
)
shares = st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.75, 0.8, 0.9])


@given(words, shares)
def test_two_parts_make_the_whole(found: list[str], share: float) -> None:
    text = "  ".join(found)
    head = first_part(text, share)
    tail = last_part(text, 1 - share)
    if len(found) > 1:
        assert head.split() + tail.split() == found
        assert abs(len(head.split()) - share * len(found)) <= 1


def test_shuffling_and_deleting_keep_sentences() -> None:
    parts = sentences(TEXT)
    shuffled = sentences(shuffled_sentences(TEXT, "article 1"))
    assert sorted(shuffled) == sorted(parts)
    left = sentences(without_sentences(TEXT, 0.5, "article 1"))
    assert len(left) == 2
    assert [part for part in parts if part in left] == left
    assert {shuffled_sentences(TEXT, key) for key in range(40)} > {TEXT}
    assert len({without_sentences(TEXT, 0.5, key) for key in range(40)}) == 6
    assert without_sentences("Only one here.", 0.9, "x") == "Only one here."
    assert without_sentences(TEXT, 0.01, "x") == TEXT


def test_masks_leave_marks_alone() -> None:
    assert (
        masked_words("Ten, (eleven) “twelve”.", 0.99, "x")
        == "[MASK], ([MASK]) “[MASK]”."
    )
    assert masked_words(TEXT, 0.25, "x", "___").count("___") == 3
    assert masked_words("a b", 0.1, "x").count("[MASK]") == 1


@given(words, shares, st.text(max_size=5))
def test_masks_are_as_many_as_wanted_and_the_rest_stays(
    found: list[str], share: float, key: str
) -> None:
    text = " ".join(found)
    made = masked_words(text, share, key)
    assert made.count("[MASK]") == max(1, round(share * len(found)))
    for before, after in zip(text.split(), made.split(), strict=True):
        assert after == before or "[MASK]" in after
    assert made == masked_words(text, share, key)


def test_the_texts_are_fixed_for_good() -> None:
    # Another order would change every experiment that was ever run.
    assert [
        shuffled_sentences(TEXT, "a-1"),
        without_sentences(TEXT, 0.5, "a-1"),
        masked_words(TEXT, 0.2, "a-1"),
    ] == FIXED


FIXED = [
    "Four five six! One two three. Ten, (eleven) twelve. Seven eight nine?",
    "Seven eight nine? Ten, (eleven) twelve.",
    "One two three. Four five [MASK]! Seven eight nine? Ten, (eleven) [MASK].",
]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ text | first_part(0) }}", "takes a share between 0 and 1, not 0"),
        ("{{ text | last_part(1.0) }}", "takes a share between 0 and 1, not 1.0"),
        (
            "{{ text | masked_words('half', 1) }}",
            "takes a share between 0 and 1, not 'half'",
        ),
        ("{{ 5 | shuffled_sentences(1) }}", "changes text, not int"),
        ("{{ '' | without_sentences(0.5, 1) }}", "has no text to change"),
        ("{{ text | shufled_sentences(1) }}", "shufled_sentences"),
    ],
)
def test_what_is_wrong_is_said(load: Load, template: str, message: str) -> None:
    task = f"""
        task: t
        dataset: {{rows: [{{id: 1, text: One two. Three four.}}]}}
        sample: {{input: x}}
        prompt: {{fields: {{changed: "{template}"}}, user: "{{{{ changed }}}}"}}
        """
    with pytest.raises((TaskError, DatasetError), match=message):
        load(task)


def test_fields_are_for_prompts_alone(load: Load) -> None:
    task = load(
        """
        task: t
        dataset: {rows: [{id: 1, text: One two. Three four., input: asked}]}
        sample: {passages: "{{ [text] }}"}
        prompt:
          fields: {half: "{{ text | first_part(0.5) }}", both: "{{ half }} / {{ input }}", input: changed}
          user: "{{ half }} {{ both }} {{ input }}"
        """
    )
    sample = task.samples[0]
    rendered = task.strategy.render(sample)  # type: ignore[attr-defined]
    assert rendered == "One two. One two. / asked changed"
    assert sample.passages[0].text == "One two. Three four."
    assert sample.input == "asked"
    assert task.definition["prompt"]["fields"]["half"] == "{{ text | first_part(0.5) }}"
