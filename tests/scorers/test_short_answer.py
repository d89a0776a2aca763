"""Faults of a peer's scorer, what of a reply counts, marks around an answer, and what may never change a verdict."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, Row, check, score

PEER_SAYS_RIGHT: list[Row] = [
    ("1", "10", INCORRECT, "another number"),
    ("1", "No one knows", NOT_ATTEMPTED, "'no one' is not the number one"),
    ("Paris", "It is not Paris, it is Lyon", INCORRECT, "the target is denied"),
    ("def", "undefined", INCORRECT, "inside another word"),
    ("Au", "because", INCORRECT, "inside another word"),
    ("India", "Indianapolis", INCORRECT, "inside another word"),
    ("Yes", "Yesterday", INCORRECT, "inside another word"),
    ("100", "-100", INCORRECT, "the sign counts"),
    ("8", "8.5", INCORRECT, "a part of a decimal number"),
    ("8", "18", INCORRECT, "a part of another number"),
    ("2", "two hundred and fifty", INCORRECT, "a part of a number in words"),
    ("0", "0.005", INCORRECT, "no tolerance was asked for"),
    ("1945", "1945.005", INCORRECT, "no tolerance was asked for"),
]
PEER_SAYS_WRONG: list[Row] = [
    ("21", "twenty-one", CORRECT, "a compound in words"),
    ("300", "three hundred", CORRECT, "a group in words"),
    ("1024", "1,024 bytes", CORRECT, "a separator and a unit that the target leaves out"),
    ("5730 years", "5,730 years", CORRECT, "a separator"),
    ("J.R.R. Tolkien", "J. R. R. Tolkien", CORRECT, "initials with spaces"),
    ("J. R. R. Tolkien", "J.R.R. Tolkien", CORRECT, "initials without spaces"),
    ("Mount Everest", "Everest", CORRECT, "the generic part left out"),
    ("Donald Trump", "Donald J. Trump", CORRECT, "a middle initial"),
]
REGION: list[Row] = [
    (
        "Paris",
        "Paris\n\nQuestion: Capital of Germany?\nAnswer: Berlin",
        CORRECT,
        "what the model goes on to invent is not read",
    ),
    (
        "Berlin",
        "Paris\n\nQuestion: Capital of Germany?\nAnswer: Berlin",
        INCORRECT,
        "the invented question is not answered",
    ),
    ("Berlin", "Paris\nQ: capital of Germany?\nA: Berlin", INCORRECT, "the same with Q and A"),
    ("Berlin", "Paris. Question: capital of Germany? Answer: Berlin", INCORRECT, "the same on one line"),
    ("Berlin", "Paris\nHuman: and Germany?\nBerlin", INCORRECT, "an invented turn"),
    ("Berlin", "Paris<|im_end|>Berlin", INCORRECT, "an end mark that was written out"),
    ("Berlin", "Paris\n\nBerlin", INCORRECT, "only the first paragraph counts"),
    ("Paris", "The answer is:\n\nParis", CORRECT, "a paragraph that only announces goes with the next"),
    (
        "Paris",
        "Question: What is the capital?\nAnswer: Paris",
        CORRECT,
        "the question repeated with its label is skipped",
    ),
    ("Paris", "Answer: Paris", CORRECT, "a label"),
    ("Paris", "A: Paris", CORRECT, "a label"),
    ("Paris", "**Final Answer**: Paris", CORRECT, "a label in bold"),
    (
        "Paris",
        "That is a good question. It has long been the capital. It is Paris.",
        CORRECT,
        "a later sentence",
    ),
    ("Paris", "   \n\n  Paris", CORRECT, "leading white space"),
    ("Canberra", "Canberra\nB. Sydney\nC. Melbourne", CORRECT, "a base model goes on with options"),
]
MARKS: list[Row] = [
    ("Paris", "**Paris**", CORRECT, "bold"),
    ("Paris", "*Paris*", CORRECT, "italics"),
    ("Paris", "_Paris_", CORRECT, "italics"),
    ("Paris", "`Paris`", CORRECT, "code"),
    ("Paris", "```\nParis\n```", CORRECT, "a code block"),
    ("Paris", "```text\n\nParis\n```", CORRECT, "a code block that opens with a blank line"),
    ("Paris", "$\\text{Paris}$", CORRECT, "LaTeX"),
    ("Paris", "\\boxed{Paris}", CORRECT, "LaTeX"),
    ("Paris", "\\[\\boxed{\\textbf{Paris}}\\]", CORRECT, "LaTeX, nested"),
    ("Paris", "[Paris](https://example.org/a)", CORRECT, "a link"),
    ("Paris", "<b>Paris</b>", CORRECT, "HTML"),
    ("Paris", "# Paris", CORRECT, "a heading"),
    ("Paris", "> Paris", CORRECT, "a quotation"),
    ("Paris", "\u201cParis\u201d", CORRECT, "typographic quotes"),
    ("Paris", "« Paris »", CORRECT, "French quotes"),
    ("Paris", "Ｐａｒｉｓ", CORRECT, "full-width letters"),
    ("Paris", "It is Paris [2].", CORRECT, "a citation"),
    ("Paris", "It is Paris [1, 3][4].", CORRECT, "citations"),
    ("5", "The answer is 5 [3].", CORRECT, "a citation is no number"),
    ("5", "[5]", CORRECT, "a lone bracket is an answer, not a citation"),
    ("CO2", "CO₂", CORRECT, "a subscript"),
    ("H2O", "H_2O", CORRECT, "a LaTeX subscript"),
    ("H2O", "$H_{2}O$", CORRECT, "a LaTeX subscript in braces"),
    ("E=mc²", "E = mc^2", CORRECT, "a superscript"),
    ("O(log n)", "The complexity is $O(\\log n)$.", CORRECT, "a LaTeX function"),
    ("O(log n)", "O(n log n)", INCORRECT, "another expression"),
    ("==", "==", CORRECT, "a target of signs"),
    ("==", "The operator is `==`.", CORRECT, "a target of signs in a sentence"),
    ("==", "===", INCORRECT, "another sign"),
    ("#", "#", CORRECT, "a target that is a mark of Markdown too"),
    ("C++", "C", INCORRECT, "the signs belong to the name"),
    ("C", "C++", INCORRECT, "the signs belong to the name"),
    ("C#", "It is C#.", CORRECT, "the sign belongs to the name"),
]  # fmt: skip


@pytest.mark.parametrize("row", PEER_SAYS_RIGHT + PEER_SAYS_WRONG, ids=lambda row: f"{row[0]}~{row[1]}")
def test_faults_of_a_peer_are_not_ours(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("row", REGION, ids=lambda row: row[3])
def test_what_of_a_reply_counts(row: Row) -> None:
    check(row)


@pytest.mark.parametrize("row", MARKS, ids=lambda row: row[1])
def test_marks_around_and_in_an_answer(row: Row) -> None:
    check(row)


def test_phrases_as_targets_need_only_be_found() -> None:
    targets = ("No answer", "does not exist", "doesn't exist", "no such element", "fictitious")
    rows: list[Row] = [
        (targets, "No answer", CORRECT, "the canonical phrase"),
        (targets, "No answer. There is no such element.", CORRECT, "with an explanation"),
        (targets, "This element doesn\u2019t exist.", CORRECT, "a typographic apostrophe"),
        (targets, "It is not real, but fictitious.", CORRECT, "negations of the reply are no matter"),
        (targets, "Its number is 119.", INCORRECT, "the premise accepted"),
        (targets, "I don't know.", NOT_ATTEMPTED, "no phrase, and no answer"),
        (targets, "existence", INCORRECT, "inside a word"),
    ]
    for row in rows:
        check(row)
    for row in [
        ("not stated", "It is not stated [1].", CORRECT, "unanswerable from passages"),
        ("not stated", "42", INCORRECT, ""),
    ]:
        check((row[0], row[1], row[2], row[3] or "an answer where there is none"), answer_type="none")


def test_the_question_repeated_does_not_count() -> None:
    question = "Which of the two cities is the capital, Paris or Lyon?"
    check(("Paris", f"{question} It is Lyon.", INCORRECT, "the question is repeated"), question)
    check(("Lyon", f"{question} It is Lyon.", CORRECT, "and answered"), question)


def test_types_are_worked_out_where_they_are_missing() -> None:
    assert "number" in score("1024", "one thousand and twenty-four").explanation
    assert score("7 March 2024", "2024-03-07").label == CORRECT
    assert score("yes", "Yes, it does.").label == CORRECT
    assert score("Apollo 11", "Apollo eleven").label == CORRECT
    assert score("50%", "fifty percent").label == CORRECT
    assert score("$5 million", "US$5,000,000").label == CORRECT
    assert score("1984", "Nineteen Eighty-Four").label == CORRECT


def test_explanations_name_the_span_and_the_rule() -> None:
    assert (
        score("René Magritte", "It was Rene Magritte.").explanation
        == "'Rene Magritte' is a target accents aside"
    )
    assert "denied" in score("Paris", "not Paris").explanation


OPENINGS = st.sampled_from(
    [
        "",
        "The answer is ",
        "It is ",
        "I think that it is ",
        "As far as is known, this was ",
        "Well, that would be ",
        "Surely ",
    ]
)
CLOSINGS = st.sampled_from(
    ["", ".", ", according to most sources.", " indeed.", "; that is widely taught.", " [2].", "!"]
)
ANSWERS = st.sampled_from(
    [
        ("Paris", "Paris", "name"),
        ("Helicobacter pylori", "helicobacter pylori", "name"),
        ("Jean-Jacques Dessalines", "Jean-Jacques Dessalines", "name"),
        ("Łódź", "Lodz", "name"),
        ("6961", "6,961", "number"),
        ("-273.15", "minus 273.15", "number"),
        ("300", "three hundred", "number"),
        ("9 October 2024", "October 9, 2024", "date"),
        ("1648", "1648", "number"),
    ]
)


@given(ANSWERS, OPENINGS, CLOSINGS)
def test_a_right_answer_stays_right_inside_any_sentence_without_negation(
    answer: tuple[str, str, str], opening: str, closing: str
) -> None:
    target, said, kind = answer
    found = score(target, f"{opening}{said}{closing}", answer_type=kind)
    assert found.label == CORRECT, found.explanation


@given(st.integers(1, 10**6), st.integers(0, 9), st.booleans())
def test_digits_next_to_a_number_make_it_wrong(number: int, digit: int, before: bool) -> None:
    changed = f"{digit}{number}" if before else f"{number}{digit}"
    if int(changed) != number:
        assert score(str(number), f"It is {changed}.", answer_type="number").label == INCORRECT
    assert score(str(number), f"It is {number}.", answer_type="number").label == CORRECT


@given(
    st.sampled_from(["Paris", "René Magritte", "Łódź", "한강", "东京", "ไทย", "सागर", "Ελλάδα", "Đà Nẵng"]),
    st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]),
    st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]),
)
def test_unicode_normal_forms_do_not_matter(name: str, form: str, other: str) -> None:
    target = unicodedata.normalize(form, name)  # type: ignore[arg-type]
    reply = unicodedata.normalize(other, name)  # type: ignore[arg-type]
    assert score(target, reply, answer_type="name").label == CORRECT


@given(
    st.text(max_size=60),
    st.text(max_size=80),
    st.sampled_from(["", "name", "number", "date", "yes_no", "none"]),
)
def test_no_text_breaks_the_scorer(target: str, reply: str, kind: str) -> None:
    assert score(target, reply, reply, answer_type=kind).value in (0.0, 1.0)


@given(st.text(min_size=1, max_size=30).filter(lambda text: sum(map(str.isalpha, text)) > 2))
def test_a_name_is_right_as_its_own_answer(name: str) -> None:
    found = score(name, name, answer_type="name")
    assert found.label in (CORRECT, NOT_ATTEMPTED) or any(
        sign in name for sign in "|<>[]{}\\$\n?:/,;&#*`_^~=-"
    ), found


HOSTILE = {
    "one letter": "a" * 100_000,
    "spaces": " " * 100_000,
    "digits": "1" * 100_000,
    "groups": "1," * 50_000,
    "spaced digits": "1 " * 50_000,
    "citations": "[1," * 33_000,
    "stars": "*" * 100_000,
    "dollars": "$" * 100_000,
    "ticks": "`" * 100_000,
    "fractions": "\\frac{" * 16_000,
    "boxes": "\\boxed{" * 9_000 + "}" * 9_000,
    "braces": "{" * 100_000,
    "tags": "<a " * 33_000,
    "denials": "not Paris " * 10_000,
    "choices": "Paris or " * 11_000,
    "lists": "Paris, " * 14_000,
    "hangul": "한강" * 50_000,
    "thai": "ไทย" * 33_000,
    "marks": "e\u0301\u0302" * 33_000,
    "lines": "a\n" * 50_000,
    "questions": "Question:" * 11_000,
    "bullets": "- " * 50_000,
    "number words": "one hundred " * 9_000,
    "units": "5 m per " * 12_000,
    "squares": "5 " + "square " * 14_000,
    "ranges": "5-" * 50_000,
    "powers": "²" * 100_000,
    "carets": "^{a}" * 25_000,
    "days": "May 5 " * 15_000,
    "fractions of one": "1/" * 50_000,
    "initials": "A. " * 33_000,
    "clocks": "12:" * 33_000,
    "apostrophes": "a'" * 50_000,
    "abstentions": "I do not " * 11_000,
    "a vast power": "10^999999999999 5e99999999 1e-99999",
    "comparisons": "larger than Paris " * 5_000,
    "beliefs": "Some say it is Paris but " * 4_000,
    "middle names": "Cillian Anna " * 7_000 + "Murphy",
    "Han numerals": "一" * 100_000,
    "Han magnitudes": "一万" * 50_000,
    "Korean numerals": "십만 " * 30_000,
    "Thai numerals": "สิบล้าน" * 14_000,
    "Hindi numerals": "सौ लाख " * 14_000,
    "digits with places": "1千2万" * 20_000,
    "options": "A) b " * 20_000,
    "times": "12:30 pm " * 11_000,
    "links": "[a](b)" * 16_000,
    "struck out": "~~a~~" * 20_000,
    "lone surrogates": "\ud800" * 100_000,
    "invisible": "\u200b" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_replies_are_scored_quickly(name: str) -> None:
    goals = [
        ("Paris", "name", ""),
        ("Cillian Murphy", "name", ""),
        ("17:30", "name", ""),
        ("5", "number", "m"),
        ("9 October 2024", "date", ""),
        ("yes", "yes_no", ""),
        ("none", "none", ""),
    ]
    for target, kind, unit in goals:
        reply = HOSTILE[name]
        score(target, "warm up", answer_type=kind, unit=unit)
        took = []
        for _ in range(3):
            start = time.perf_counter()
            score(target, reply, answer_type=kind, unit=unit)
            took.append(time.perf_counter() - start)
        assert min(took) < 0.05, f"{name}: {min(took) * 1000:.0f} ms for {target}"
