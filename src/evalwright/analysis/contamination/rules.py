"""Rewrites by rule: options in another order, names and labels swapped, another sentence frame, the opposite asked.

A rule that is not sure to keep the question's meaning leaves the sample alone; how many it left is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from evalwright.core.samples import Passage, Sample
from evalwright.tasks.orders import shuffled

Kind = Literal["paraphrase", "entities", "shuffle", "negate"]
KINDS: tuple[Kind, ...] = ("paraphrase", "entities", "shuffle", "negate")


def shuffle(sample: Sample) -> Sample | None:
    """The options in another order, with a right one in another place; None where options speak of each other's places."""
    if len(sample.choices) < 2 or any(_SPEAKS_OF_OTHERS.search(choice) for choice in sample.choices):
        return None
    for attempt in range(20):
        order = list(shuffled(len(sample.choices), f"rewrite {attempt} of {sample.id}"))
        gold = tuple(order.index(place) for place in sample.gold)
        if gold != sample.gold:
            return replace(sample, choices=tuple(sample.choices[place] for place in order), gold=gold)
    return None


_SPEAKS_OF_OTHERS = re.compile(
    r"\b(?:all|none|both|neither|either|any) of (?:the|these|those)\b|\b(?:both|neither|either)\b.*\b[A-H]\b|^[A-H] (?:and|or|&) [A-H]\b",
    re.IGNORECASE,
)


# -- names and labels -----------------------------------------------------------------------------------------------------

_NAMES = (
    ("Sarah", "Hannah"), ("Emily", "Clara"), ("Emma", "Julia"), ("Mary", "Helen"), ("Anna", "Laura"), ("Lisa", "Nora"),
    ("Maria", "Teresa"), ("Jane", "Ruth"), ("Alice", "Irene"), ("Olivia", "Miriam"), ("Sophia", "Agnes"), ("Rachel", "Judith"),
    ("John", "Peter"), ("James", "Martin"), ("Tom", "Paul"), ("Michael", "Oliver"), ("David", "Simon"), ("Robert", "Henry"),
    ("Mark", "Felix"), ("Daniel", "Victor"), ("Tim", "Max"), ("Bob", "Ned"), ("Jack", "Hugo"), ("Kevin", "Oscar"),
)  # fmt: skip
"""First names in pairs of one sex, so that pronouns stay right; each stands for the other."""

_SWAPS = {a: b for pair in _NAMES for a, b in (pair, pair[::-1])}
_NAME = re.compile(rf"\b(?:{'|'.join(_SWAPS)})\b")
_LABELLED = re.compile(
    r"\b(room|gate|platform|flight|locker|order|invoice|ticket|track|bus|table|box|seat|shelf|ward)( (?:no\. ?|number )?)(\d{1,4})\b",
    re.IGNORECASE,
)
_TITLES = "Saint|St|King|Queen|Pope|President|Prince|Princess|Sir|Lady|Lord|Captain|Emperor|Empress|Dr|Mr|Mrs|Ms|Professor"
_SENTENCE_END = re.compile(r"[.!?]\s+[A-Z]")


def entities(sample: Sample) -> Sample | None:
    """First names swapped and labels ("room 14") renumbered, in the question, its passages, options and targets alike.

    Only where the text tells its own facts (it has passages, or is a story of several sentences): elsewhere a name means
    somebody, and another name would ask something else.
    """
    texts = [sample.input, *(passage.text for passage in sample.passages)]
    if not sample.passages and not _SENTENCE_END.search(sample.input):
        return None
    whole = "\n".join([*texts, *sample.choices, *sample.targets])
    swaps = {name: _SWAPS[name] for name in sorted(set(_NAME.findall(whole)))}
    if any(_full_name(whole, name) or _SWAPS[name] in swaps for name in swaps):
        return None
    labels = _new_labels(whole)
    if not swaps and not labels:
        return None

    def changed(text: str) -> str:
        text = _NAME.sub(lambda found: swaps.get(found.group(), found.group()), text)
        for old, new in labels.items():
            text = re.sub(rf"(?<![\d.,-]){old}(?![\d]|[.,]\d)", f"\0{new}\0", text)
        return text.replace("\0", "")

    return replace(
        sample,
        input=changed(sample.input),
        targets=tuple(map(changed, sample.targets)),
        choices=tuple(map(changed, sample.choices)),
        passages=tuple(Passage(passage.id, changed(passage.text)) for passage in sample.passages),
    )


def _full_name(text: str, name: str) -> bool:
    """Whether a name stands beside another capitalised word: "King James", "John Adams"; then it means a real person."""
    beside = rf"\b(?:{_TITLES})\.? {name}\b|\b{name} (?:[A-Z]\w*|of\b|the\b)|(?<![.!?] )(?<!^)(?<!\n)\b[A-Z]\w+ {name}\b"
    return re.search(beside, text) is not None


def _new_labels(text: str) -> dict[str, str]:
    """Another number for each label; none where a label's number also stands elsewhere, as a quantity."""
    numbers = {found.group(3) for found in _LABELLED.finditer(text)}
    rest = _LABELLED.sub(" ", text)
    used = set(re.findall(r"\d+", text))
    out: dict[str, str] = {}
    for number in sorted(numbers):
        alone = re.fullmatch(r"[1-9]\d*", number) and not re.search(rf"(?<!\d){number} [a-z]", rest)
        step = next(step for step in range(3, 10_000) if str(int(number) + step) not in used)
        if not alone:
            return {}
        out[number] = str(int(number) + step)
        used.add(out[number])
    return out


# -- sentence frames ------------------------------------------------------------------------------------------------------

_PAST = (
    "won|wrote|became|discovered|invented|painted|composed|directed|founded|designed|borders|contains|lies|holds|produces|"
    "makes|comes|flows|belongs|means|orbits|covers|connects|hosted|signed|ruled|led"
)
_PARTICIPLE = (
    r"\w+ed|born|built|written|made|held|fought|sung|drawn|shot|won|begun|grown|known|found|kept|sold|taken"
)
_NOUN = r"(?:[a-z][\w'-]*)(?: [a-z][\w'-]*){0,2}?"
_FRAMES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), frame)
    for pattern, frame in (
        (rf"(?:Which|What) ({_NOUN}) ((?:{_PAST}) .+)\?", r"Name the \1 that \2."),
        (rf"(?:Which|What) ({_NOUN}) (ha[sd] (?:the|an?) .+)\?", r"Name the \1 that \2."),
        (r"Who ((?:wrote|won|discovered|invented|painted|composed|directed|founded|designed) .+)\?", r"Name whoever \1."),
        (r"How many (.+?) are (?:there )?in (.+)\?", r"Give the number of \1 in \2."),
        (rf"How many ({_NOUN}) does (.+) have\?", r"Give the number of \1 that \2 has."),
        (rf"How many ({_NOUN}) do (.+) have\?", r"Give the number of \1 that \2 have."),
        (
            rf"(Where|When|In which [a-z]+) (was|were|is|are) ((?:[Tt]he )?(?:[A-Z][\w'.-]* ?)+) ((?:{_PARTICIPLE})\b.*)\?",
            r"Say \1 \3 \2 \4.",
        ),
        (r"(What|Who) (is|was|are|were) (the (?:\S+ ){0,6}?\S+)\?", r"Say \1 \3 \2."),
    )
)  # fmt: skip


def paraphrase(sample: Sample) -> Sample | None:
    """The question in another sentence frame; None where no frame fits the whole of it."""
    text = sample.input.strip()
    if "\n" in text or _SENTENCE_END.search(text):
        return None
    for pattern, frame in _FRAMES:
        found = pattern.fullmatch(text)
        if found is not None:
            said = found.expand(frame)
            said = re.sub(
                r"^Say (Where|When|What|Who|In)\b", lambda match: f"Say {match.group(1).lower()}", said
            )
            return replace(sample, input=said[0].upper() + said[1:])
    return None


# -- the opposite -----------------------------------------------------------------------------------------------------------

_OPPOSITE = {"yes": "no", "no": "yes", "true": "false", "false": "true"}


def negate(sample: Sample) -> Sample | None:
    """A yes or no question asked the other way round, with the other answer; None for any other question."""
    text = sample.input.strip()
    if "\n" in text or not text:
        return None
    if sample.choices:
        said = [choice.strip().casefold().rstrip(".") for choice in sample.choices]
        if len(said) != 2 or len(sample.gold) != 1 or _OPPOSITE.get(said[0]) != said[1]:
            return None
        return replace(sample, input=_asked(text, said[0]), gold=(1 - sample.gold[0],))
    said = [target.strip().casefold().rstrip(".") for target in sample.targets]
    if not said or any(word not in _OPPOSITE for word in said):
        return None
    opposite = tuple(
        _like(target, _OPPOSITE[word]) for target, word in zip(sample.targets, said, strict=True)
    )
    return replace(sample, input=_asked(text, said[0]), targets=opposite)


def _asked(text: str, answer: str) -> str:
    if text.endswith("?"):
        return f'Is "no" the right answer to this question? {text}'
    statement = text if text.endswith((".", "!")) else f"{text}."
    question = "?" if answer in ("yes", "no") else ""
    return (
        f"Is the following statement false? {statement}"
        if question
        else f"The following statement is false: {statement}"
    )


def _like(target: str, word: str) -> str:
    return word.capitalize() if target[:1].isupper() else word


RULES: dict[Kind, Callable[[Sample], Sample | None]] = {
    "paraphrase": paraphrase,
    "entities": entities,
    "shuffle": shuffle,
    "negate": negate,
}
