"""Which citations of an answer hold: claim by claim, by rules where they are certain, by a judge's
word where one is asked, and else by the likelier reading.

Precision and recall are those of ALCE (Gao et al., 2023, arXiv:2305.14627). A claim is supported
where the passages that it cites, taken together, hold it. A citation is precise where its claim is
supported and the passage does something for that: it holds the claim alone, or the others do not
hold it without it.

Where the sample names the passages that its answer needs (`metadata["citations"]`), they decide
about the claim that gives the right answer: "63 [1]" is not supported because passage 1 has a 63 of
something else in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.grounding.claims import Claim, claims_of, is_courtesy
from evalwright.scorers.grounding.evidence import (
    likely_missing,
    missing_quote,
    stands_in,
    unknown_details,
)
from evalwright.scorers.grounding.outcome import (
    ABSTAINED_RIGHTLY,
    ANSWERED_RIGHT,
    ANSWERED_WRONG,
    INELIGIBLE,
    PHRASE,
    RIGHT,
    UNSUPPORTED,
    given,
    is_answerable,
    is_right,
)
from evalwright.scorers.text.declining import declines

Check = tuple[int, tuple[str, ...]]
"""A claim, by its place, and the passages that it is held against."""
Faults = Mapping[Check, str | None]
"""Why passages do not hold a claim: "" where they do, None where rules cannot tell."""


@dataclass(slots=True)
class Need:
    """A claim that needs a citation: ids that it cites and that there are, and ids that no passage
    has.

    bearing: it gives the right answer.
    """

    claim: Claim
    cited: tuple[str, ...]
    unknown: tuple[str, ...]
    bearing: bool = False


@dataclass(slots=True)
class Case:
    """An answer, read: its class by what it says, its claims, and the ids cited for nothing at all.

    gold: the passages that the answer needs. everything: all that any claim cites.
    """

    sample: Sample
    label: str
    why: str
    unsure: str
    needs: list[Need]
    loose: tuple[str, ...]
    gold: frozenset[str]
    everything: frozenset[str]


def read_case(sample: Sample, answer: Answer) -> Case:
    """Read an answer for its class and claims."""
    ids = tuple(passage.id for passage in sample.passages)
    claims, loose = claims_of(answer.text, ids)
    found = given(sample, answer, claims)
    right = found.label == ANSWERED_RIGHT
    needs = [
        Need(
            claim,
            tuple(i for i in claim.cited if i in ids),
            tuple(i for i in claim.cited if i not in ids),
        )
        for claim in claims
        if claim.words
        and found.label not in (INELIGIBLE, ABSTAINED_RIGHTLY)
        and not declines(claim.text)
        and (not is_courtesy(claim) or (right and is_right(sample, claim.text)))
    ]
    everything = frozenset(name for need in needs for name in need.cited)
    if right:
        _mark_bearing(sample, needs)
    return Case(
        sample,
        found.label,
        found.why,
        found.unsure,
        needs,
        loose,
        _gold(sample),
        everything,
    )


def checks(case: Case) -> list[Check]:
    """What must be known to tell which claims are supported and which citations are precise."""
    out: list[Check] = []
    for place, need in enumerate(case.needs):
        if not need.cited:
            continue
        sets = [need.cited]
        if len(need.cited) > 1 and not _by_gold(case, need):
            sets += [(name,) for name in need.cited]
            sets += [
                tuple(other for other in need.cited if other != name)
                for name in need.cited
            ]
        out += [(place, ids) for ids in dict.fromkeys(sets)]
    return out


def rule_fault(case: Case, check: Check) -> str | None:
    """Why these passages do not hold the claim, "" where they do, None where rules cannot tell."""
    place, ids = check
    need = case.needs[place]
    sample = case.sample
    by_gold = _by_gold(case, need)
    # The answer's own steps may stand in passages that other claims cite.
    known = case.everything | set(ids) if by_gold else set(ids)
    held = [passage.text for passage in sample.passages if passage.id in known]
    if quote := missing_quote(need.claim.text, (*held, sample.input)):
        return f"the quote '{shortened(quote)}' is not there"
    if by_gold:
        if not case.gold.intersection(ids):
            return f"the answer is in {_named(case.gold)}"
        if lacking := case.gold - known:
            return f"it needs {_named(lacking)} too"
        return (
            None
            if unknown_details(need.claim.text, (*held, sample.input, *sample.targets))
            else ""
        )
    if case.label == ANSWERED_WRONG and need.claim.words <= PHRASE:
        if not is_answerable(sample):
            return "they do not answer the question"
        if sample.targets:
            return "this is not what they answer"
    return "" if stands_in(need.claim.text, held) else None


def likely_fault(case: Case, check: Check) -> str:
    """The likelier reading where `rule_fault` cannot tell: why the passages do not hold the claim,
    "" where they do.
    """
    place, ids = check
    need = case.needs[place]
    sample = case.sample
    known = case.everything | set(ids) if _by_gold(case, need) else set(ids)
    held = [passage.text for passage in sample.passages if passage.id in known]
    # "Sixty-three" is there where 63 is.
    there = need.bearing and any(stands_in(target, held) for target in sample.targets)
    return likely_missing(
        need.claim.text, (*held, *sample.targets) if there else held, sample.input
    )


def premise(case: Case, check: Check) -> str:
    """The text of the passages that a judge is shown."""
    place, ids = check
    wanted = (
        case.gold & case.everything | set(ids)
        if _by_gold(case, case.needs[place])
        else set(ids)
    )
    return "\n\n".join(
        passage.text for passage in case.sample.passages if passage.id in wanted
    )


def hypothesis(case: Case, place: int) -> str:
    """The claim as a judge is shown it: a phrase comes with the question that it answers."""
    claim = case.needs[place].claim
    return (
        f"{case.sample.input} {claim.text}".strip()
        if claim.words <= PHRASE
        else claim.text
    )


def conclude(case: Case, checked: Faults) -> Score:
    """The score of an answer, from what every check found; an open check counts by its likelier
    reading.

    Unsure where the answer is right and nothing but an open check stands between it and its
    support.
    """
    faults = {
        check: likely_fault(case, check) if fault is None else fault
        for check, fault in checked.items()
    }
    notes = _notes(case, faults)
    unsure = case.unsure
    unclear = [
        need
        for place, need in enumerate(case.needs)
        if need.cited and checked[place, need.cited] is None
    ]
    if case.label == ANSWERED_RIGHT and unclear and not _notes(case, checked):
        text = shortened(unclear[0].claim.text)
        unsure = f"whether '{text}' follows from what it cites needs a judge"
    label = UNSUPPORTED if case.label == ANSWERED_RIGHT and notes else case.label
    parts = {"correct": float(case.label in RIGHT), **_shares(case, faults)}
    why = case.why if label != UNSUPPORTED else f"right ({case.why})"
    return Score(
        float(label in RIGHT),
        label,
        "; ".join([why, *notes[:3]]),
        {**parts, label: 1.0},
        unsure=unsure,
    )


def _notes(case: Case, faults: Faults) -> list[str]:
    """What is wrong with the answer's citations; an open check is no fault."""
    notes = [
        note
        for place, need in enumerate(case.needs)
        if (note := _note(need, faults[place, need.cited] if need.cited else ""))
    ]
    if case.label == ANSWERED_RIGHT and (apart := _gold_apart(case)):
        notes.append(apart)
    return notes


def _shares(case: Case, faults: Faults) -> dict[str, float]:
    """Counts, and precision, recall and F1 where they are defined."""
    cited = len(case.loose)
    claims = len(case.needs)
    supporting = supported = 0
    for place, need in enumerate(case.needs):
        cited += len(need.cited) + len(need.unknown)
        supporting += sum(_precise(case, faults, place, name) for name in need.cited)
        supported += bool(need.cited) and not faults[place, need.cited]
    parts = {
        "cited": float(cited),
        "supporting": float(supporting),
        "claims": float(claims),
        "supported": float(supported),
    }
    precision = supporting / cited if cited else 0.0
    recall = supported / claims if claims else 0.0
    if cited:
        parts["precision"] = precision
    if claims:
        parts["recall"] = recall
    if cited or claims:
        both = precision + recall
        parts["f1"] = 2 * precision * recall / both if both else 0.0
    return parts


def _precise(case: Case, faults: Faults, place: int, name: str) -> bool:
    need = case.needs[place]
    found = faults[place, need.cited]
    if _by_gold(case, need):
        # A needed passage is rightly cited even where another one is missing beside it.
        return name in case.gold and (not found or found.startswith("it needs "))
    if found:
        return False
    if len(need.cited) == 1 or not faults[place, (name,)]:
        return True
    return bool(faults[place, tuple(other for other in need.cited if other != name)])


def _note(need: Need, found: str | None) -> str:
    """What is wrong with a claim's citations, in words."""
    shown = f"'{shortened(need.claim.text)}'"
    if need.unknown:
        return f"{shown} cites {_named(need.unknown)}, which does not exist"
    if not need.cited:
        return f"{shown} cites nothing"
    return f"{shown} cites {_named(need.cited)}: {found}" if found else ""


def _mark_bearing(sample: Sample, needs: Sequence[Need]) -> None:
    """Find the claims that give the answer; one without a citation of its own repeats what another
    one cites.
    """
    for need in needs:
        need.bearing = len(needs) == 1 or is_right(sample, need.claim.text)
    cited = tuple(
        dict.fromkeys(name for need in needs if need.bearing for name in need.cited)
    )
    for need in needs:
        if need.bearing and not need.cited and not need.unknown:
            need.cited = cited


def _by_gold(case: Case, need: Need) -> bool:
    return need.bearing and bool(case.gold)


def _gold_apart(case: Case) -> str:
    """Where no single claim gives the answer: which of the needed passages nothing cites."""
    if not case.needs:
        return (
            "nothing is cited" if not case.loose else "the citations belong to no claim"
        )
    if any(need.bearing for need in case.needs):
        return ""
    lacking = case.gold - case.everything
    return f"nothing cites {_named(lacking)}" if lacking else ""


def _gold(sample: Sample) -> frozenset[str]:
    found = sample.metadata.get("citations")
    if not found or not is_answerable(sample):
        return frozenset()
    if isinstance(found, str):
        found = [part.strip() for part in found.split(",") if part.strip()]
    return (
        frozenset(str(one) for one in found)
        if isinstance(found, Sequence)
        else frozenset()
    )


def _named(ids: frozenset[str] | Sequence[str]) -> str:
    names = sorted(ids)
    return f"passage{'s' if len(names) > 1 else ''} {' and '.join(names)}"
