"""What no wording, no digit beside a number and no spelling of a sign may change, over answers made at random."""

from __future__ import annotations

import unicodedata
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evalwright.scorers.abstention import abstains
from evalwright.scorers.numbers.agree import AS_TARGET, Tolerance
from evalwright.scorers.numbers.words import WORDS as NUMBER_WORDS
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.places import place_in
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.text.transliteration import spelled_alike
from scorers.scoring import CORRECT, INCORRECT, score

OPENINGS = [
    "", "It is ", "The answer is ", "I believe that it is ", "I'm not sure, but I think it is ", "Well, ", "Sure! It's ", "**Answer:** ",
    "After some thought I would say ", "As most people know, that is ", "Historians agree on ",
]  # fmt: skip
CLOSINGS = [
    "",
    ".",
    "!",
    " indeed.",
    ", as far as I know.",
    ", which is well documented.",
    ". I hope this helps!",
    " [1].",
    "\n\nLet me know.",
]
WRAPPINGS = [
    "{}",
    "**{}**",
    "*{}*",
    "`{}`",
    '"{}"',
    "\u201c{}\u201d",
    "\\text{{{}}}",
    "<b>{}</b>",
    "({})",
    "_{}_",
    "[{}](https://example.org)",
]
WORDS = st.text(alphabet="abcdefghijklmnoprstuvz", min_size=4, max_size=9).map(str.capitalize)
NAMES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
FORMS = ["NFC", "NFD", "NFKC", "NFKD"]


SPECIAL = {
    "none", "wait", "actually", "maybe", "there", "these", "which", "than", "from", "into", "both", "never", "cannot", "except", "unlike",
    "null", "pass", "once", "single", "sole", "lets", "edit", "oops", "sorry",
}  # fmt: skip


def _is_plain_word(name: str) -> bool:
    """Not by chance a word with a meaning of its own ("Never", "Second")."""
    words = Words(name)
    return not abstains(words) and not any(
        token in NUMBER_WORDS or token in SPECIAL for token in words.tokens
    )


@given(NAMES, st.sampled_from(OPENINGS), st.sampled_from(CLOSINGS), st.sampled_from(WRAPPINGS))
def test_a_right_name_stays_right_inside_any_wrapping_without_negation(
    name: str, opening: str, closing: str, wrapping: str
) -> None:
    assume(_is_plain_word(name))
    found = score(name, f"{opening}{wrapping.format(name)}{closing}", answer_type="name")
    assert found.label == CORRECT, found.explanation


@given(
    st.integers(2, 10**9),
    st.sampled_from(["{}", "{:,}"]),
    st.sampled_from(OPENINGS),
    st.sampled_from(CLOSINGS),
    st.sampled_from(WRAPPINGS),
)
def test_a_right_number_stays_right_inside_any_wrapping_without_negation(
    number: int, form: str, opening: str, closing: str, wrapping: str
) -> None:
    assume("](" not in wrapping)  # a number that is linked is a citation
    reply = f"{opening}{wrapping.format(form.format(number))}{closing}"
    found = score(str(number), reply, answer_type="number")
    assert found.label == CORRECT, found.explanation


@given(
    NAMES,
    st.sampled_from(
        [
            "not {}",
            "It is not {}.",
            "It isn't {}.",
            "anything but {}",
            "Lyon rather than {}",
            "neither {} nor Lyon",
        ]
    ),
)
def test_a_denied_name_is_never_right(name: str, denial: str) -> None:
    assume(_is_plain_word(name))
    assert score(name, denial.format(name), answer_type="name").label == INCORRECT


@given(
    st.integers(1, 10**7),
    st.text(alphabet="0123456789", min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from(OPENINGS),
)
def test_digits_next_to_a_number_make_it_wrong(number: int, digits: str, before: bool, opening: str) -> None:
    changed = f"{digits}{number}" if before else f"{number}{digits}"
    assume(int(changed) != number)
    assert score(str(number), f"{opening}{changed}", answer_type="number").label == INCORRECT


@given(st.integers(1, 10**6), st.integers(1, 9), st.sampled_from(["{}.{}", "{}.0{}", "-{}{}", "{},00{}"]))
def test_decimals_signs_and_groups_make_another_number(number: int, digit: int, form: str) -> None:
    assert score(str(number), form.format(number, digit), answer_type="number").label == INCORRECT


@given(WORDS, WORDS)
def test_a_name_inside_a_longer_word_is_not_it(name: str, more: str) -> None:
    assume(_is_plain_word(name))
    for longer in (name + more.lower(), more + name.lower()):
        assert score(name, longer, answer_type="name").label == INCORRECT


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", FORMS)
@given(
    st.sampled_from(
        [
            "René Magritte",
            "Łódź",
            "Đà Nẵng",
            "서울",
            "한강",
            "東京",
            "กรุงเทพ",
            "दिल्ली",
            "சென்னை",
            "Αθήνα",
            "القاهرة",
            "Ångström",
            "ﬁnch",
            "H₂O",
            "½",
        ]
    )
)
def test_unicode_normal_forms_do_not_matter(form: str, other: str, name: str) -> None:
    target = unicodedata.normalize(form, name)  # type: ignore[arg-type]
    reply = unicodedata.normalize(other, name)  # type: ignore[arg-type]
    assert score(target, reply).label == CORRECT


@given(st.integers(1, 999_999), st.integers(1, 6), st.integers(-200_000, 200_000))
def test_significant_figures_are_those_of_rounding(target: int, figures: int, off: int) -> None:
    """Against the definition: both numbers, written with so many figures at the target's place, are the same."""
    value = Decimal(target + off)
    unit = Decimal(10) ** (len(str(target)) - figures)
    allowed = Tolerance(significant=figures).allows(value, Decimal(target))
    assume((value / unit) % 1 != Decimal("0.5") and (Decimal(target) / unit) % 1 != Decimal("0.5"))
    same = round(value / unit) == round(Decimal(target) / unit)
    assert allowed == same or value == target


def test_significant_figures_of_a_known_rule() -> None:
    """The published example of SimpleQA: 120k takes 115k and 124k, not 113k."""
    tolerance = {"significant": "target"}
    for reply, label in [
        ("120k", CORRECT),
        ("124k", CORRECT),
        ("115k", CORRECT),
        ("100k", INCORRECT),
        ("113k", INCORRECT),
    ]:
        assert score("120k", reply, answer_type="number", tolerance=tolerance).label == label
    assert AS_TARGET < 0


@given(st.text(max_size=80), st.integers(0, 80), st.integers(1, 20))
def test_places_in_the_reply_are_inside_it(raw: str, start: int, length: int) -> None:
    made = plain(raw)
    first, last = place_in(raw, made, min(start, len(made)), min(start + length, len(made)))
    assert 0 <= first <= last <= len(raw)


DIFFERENT = [
    ("marie", "maria"), ("maria", "mario"), ("gary", "cary"), ("lenin", "lennon"), ("austria", "australia"), ("niger", "nigeria"),
    ("slovakia", "slovenia"), ("iran", "iraq"), ("bach", "back"), ("chopin", "copland"), ("paul", "paula"),
    ("robert", "roberta"), ("martin", "martine"), ("putin", "rasputin"), ("peter", "petra"), ("carlo", "carla"), ("julian", "juliana"),
    ("dante", "danton"), ("monet", "manet"), ("moore", "mora"), ("anna", "hanna"), ("francis", "frances"),
    ("gambia", "zambia"), ("mali", "malawi"), ("dominica", "dominican"), ("latvia", "lithuania"), ("budapest", "bucharest"),
    ("stalin", "stalina"), ("tolstoy", "tolstaya"), ("lima", "limo"), ("kuwait", "kuweni"), ("oman", "amman"), ("omar", "amar"),
]  # fmt: skip
ALIKE = [
    ("tchaikovsky", "tschaikowski"), ("tchaikovsky", "chaikovskiy"), ("dostoevsky", "dostoyevsky"), ("dostoevsky", "dostojewski"),
    ("gaddafi", "qaddafi"), ("gaddafi", "gadhafi"), ("yeltsin", "eltsin"), ("pushkin", "puschkin"), ("gandhi", "ghandi"),
    ("muhammad", "mohammed"), ("hussein", "husayn"), ("sergei", "sergey"), ("nikolai", "nikolay"), ("nicolai", "nikolai"),
    ("catherine", "katherine"), ("philip", "filip"), ("kharkiv", "karkiv"), ("organisation", "organization"), ("colour", "color"),
    ("centre", "center"), ("grey", "gray"), ("aluminium", "aluminum"), ("sulphur", "sulfur"), ("mitochondria", "mitocondria"),
    ("theatre", "theater"), ("encyclopaedia", "encyclopedia"), ("alexander", "aleksandr"), ("milošević", "milosevic"),
    ("zhukov", "žukov"), ("youssef", "yusuf"), ("defence", "defense"), ("analyse", "analyze"), ("traveller", "traveler"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_spellings_do_not_merge_other_names(one: str, other: str) -> None:
    if (one, other) in {("stephen", "stefan")}:
        pytest.skip("one name in two languages, which a reader may take for the same")
    assert spelled_alike(one).isdisjoint(spelled_alike(other))


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_other_spellings_of_one_name_are_one(one: str, other: str) -> None:
    assert not spelled_alike(one).isdisjoint(spelled_alike(other))
