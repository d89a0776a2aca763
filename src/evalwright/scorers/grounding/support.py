"""Which citations of an answer hold: claim by claim, by rules over the passages, and by a judge's word where one is asked.

Precision and recall are those of ALCE (Gao et al., 2023, arXiv:2305.14627). A claim is supported where the passages that it
cites, taken together, hold it. A citation is precise where its claim is supported and the passage does something for that: it
holds the claim alone, or the others do not hold it without it.

Where the sample names the passages that its answer needs (`metadata["citations"]`), they decide about the claim that gives the right answer:
"63 [1]" is not supported because passage 1 has a 63 of something else in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.grounding.abstaining import declines
from evalwright.scorers.grounding.claims import Claim, claims_of, is_courtesy
from evalwright.scorers.grounding.evidence import Source, fault, source
from evalwright.scorers.grounding.outcome import (
    ABSTAINED_RIGHTLY,
    ANSWERED_RIGHT,
    ANSWERED_WRONG,
    INELIGIBLE,
    RIGHT,
    UNSUPPORTED,
    given,
    is_answerable,
    is_right,
    language_of,
)

PHRASE = 6
"""A claim of so many words or fewer is a phrase that means something only as an answer to the question."""

Check = tuple[int, tuple[str, ...]]
"""A claim, by its place, and the passages that it is held against."""


@dataclass(slots=True)
class Need:
    """A claim that needs a citation: ids that it cites and that there are, and ids that no passage has.

    bearing: it gives the right answer.
    """

    claim: Claim
    cited: tuple[str, ...]
    unknown: tuple[str, ...]
    bearing: bool = False


@dataclass(slots=True)
class Case:
    """An answer, read: its class by what it says, its claims, the passages, and the ids cited for nothing at all."""

    sample: Sample
    label: str
    why: str
    needs: list[Need]
    loose: tuple[str, ...]
    gold: frozenset[str]
    sources: Mapping[str, Source]
    question: Source
    targets: tuple[Source, ...]
    language: str
    everything: frozenset[str] = field(default=frozenset())


def read_case(sample: Sample, answer: Answer) -> Case:
    """Read an answer for its class and claims."""
    language = language_of(sample)
    ids = tuple(passage.id for passage in sample.passages)
    claims, loose = claims_of(answer.text, ids)
    found = given(sample, answer, claims)
    if found.label == INELIGIBLE:
        claims = []
    needs = [
        Need(claim, tuple(i for i in claim.cited if i in ids), tuple(i for i in claim.cited if i not in ids))
        for claim in claims
        if claim.words
        and not declines(claim.text)
        and (not is_courtesy(claim) or _answers(sample, found.label, claim))
    ]
    if found.label == ABSTAINED_RIGHTLY:
        # Words that the sample itself expects of an abstention claim nothing.
        needs = [need for need in needs if not is_right(sample, need.claim.text)]
    case = Case(
        sample,
        found.label,
        found.why,
        needs,
        loose,
        _gold(sample),
        {passage.id: source(passage.text, language) for passage in sample.passages},
        source(sample.input, language),
        tuple(source(target, language) for target in sample.targets),
        language,
        frozenset(name for need in needs for name in need.cited),
    )
    if found.label == ANSWERED_RIGHT:
        _mark_bearing(case, answer)
    return case


def checks(case: Case) -> list[Check]:
    """What must be known to tell which claims are supported and which citations are precise."""
    out: list[Check] = []
    for place, need in enumerate(case.needs):
        if not need.cited:
            continue
        sets = [need.cited]
        if len(need.cited) > 1 and not _by_gold(case, need):
            sets += [(name,) for name in need.cited]
            sets += [tuple(other for other in need.cited if other != name) for name in need.cited]
        out += [(place, ids) for ids in dict.fromkeys(sets)]
    return out


def rule_fault(case: Case, check: Check) -> str:
    """Why these passages do not hold the claim, by the rules; "" where nothing speaks against it."""
    place, ids = check
    need = case.needs[place]
    by_gold = _by_gold(case, need)
    known = case.everything | set(ids) if by_gold else set(ids)
    if not by_gold and case.label == ANSWERED_WRONG and need.claim.words <= PHRASE and _judges_phrases(case):
        return (
            "this is not what they answer"
            if is_answerable(case.sample)
            else "they do not answer the question"
        )
    # The answer's own steps may stand in passages that other claims cite.
    held = [case.sources[name] for name in case.sources if name in known]
    found = fault(
        need.claim.text,
        held,
        case.question,
        case.targets if by_gold else (),
        language=case.language,
        words=not by_gold,  # "it can be concluded that the total comes to 63"
    )
    if found or not by_gold:
        return found
    if not case.gold.intersection(ids):
        return f"the answer is in {_named(case.gold)}"
    lacking = case.gold - known
    return f"it needs {_named(lacking)} too" if lacking else ""


def premise(case: Case, check: Check) -> str:
    """The text of the passages that a judge is shown."""
    place, ids = check
    wanted = case.gold & case.everything | set(ids) if _by_gold(case, case.needs[place]) else set(ids)
    return "\n\n".join(passage.text for passage in case.sample.passages if passage.id in wanted)


def hypothesis(case: Case, place: int) -> str:
    """The claim as a judge is shown it: a phrase comes with the question that it answers."""
    claim = case.needs[place].claim
    return f"{case.sample.input} {claim.text}".strip() if claim.words <= PHRASE else claim.text


def conclude(case: Case, faults: Mapping[Check, str]) -> Score:
    """The score of an answer, from what every check found ("" where the passages hold the claim)."""
    cited = supporting = supported = 0
    notes: list[str] = []
    for place, need in enumerate(case.needs):
        cited += len(need.cited) + len(need.unknown)
        fault_found = faults[place, need.cited] if need.cited else ""
        supporting += sum(_precise(case, faults, place, name) for name in need.cited)
        supported += bool(need.cited) and not fault_found
        if note := _note(need, fault_found):
            notes.append(note)
    cited += len(case.loose)
    if case.label == ANSWERED_RIGHT and (apart := _gold_apart(case)):
        notes.append(apart)
    label = UNSUPPORTED if case.label == ANSWERED_RIGHT and notes else case.label
    parts = {"correct": float(case.label in RIGHT), **_shares(cited, supporting, len(case.needs), supported)}
    why = case.why if label != UNSUPPORTED else f"right ({case.why})"
    return Score(float(label in RIGHT), label, "; ".join([why, *notes[:3]]), {**parts, label: 1.0})


def _shares(cited: int, supporting: int, claims: int, supported: int) -> dict[str, float]:
    """Counts, and precision, recall and F1 where they are defined."""
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


def _precise(case: Case, faults: Mapping[Check, str], place: int, name: str) -> bool:
    need = case.needs[place]
    if _by_gold(case, need):
        # A needed passage is rightly cited even where another one is missing beside it.
        found = faults[place, need.cited]
        return name in case.gold and (not found or found.startswith("it needs "))
    if faults[place, need.cited]:
        return False
    if len(need.cited) == 1 or not faults[place, (name,)]:
        return True
    return bool(faults[place, tuple(other for other in need.cited if other != name)])


def _note(need: Need, found: str) -> str:
    """What is wrong with a claim's citations, in words."""
    text = " ".join(need.claim.text.split())
    shown = f"'{text if len(text) <= 60 else f'{text[:57]}...'}'"
    if need.unknown:
        return f"{shown} cites {_named(need.unknown)}, which there is not"
    if not need.cited:
        return f"{shown} cites nothing"
    return f"{shown} cites {_named(need.cited)}: {found}" if found else ""


def _mark_bearing(case: Case, answer: Answer) -> None:
    """Find the claims that give the answer; one without a citation of its own repeats what another one cites."""
    for need in case.needs:
        need.bearing = is_right(case.sample, need.claim.text)
    if len(case.needs) == 1:
        case.needs[0].bearing = True
    cited = tuple(dict.fromkeys(name for need in case.needs if need.bearing for name in need.cited))
    for need in case.needs:
        if need.bearing and not need.cited and not need.unknown:
            need.cited = cited


def _answers(sample: Sample, label: str, claim: Claim) -> bool:
    """Whether what looks like a courtesy gives the right answer."""
    return label == ANSWERED_RIGHT and is_right(sample, claim.text)


def _by_gold(case: Case, need: Need) -> bool:
    return need.bearing and bool(case.gold)


def _judges_phrases(case: Case) -> bool:
    return bool(case.sample.targets) or not is_answerable(case.sample)


def _gold_apart(case: Case) -> str:
    """Where no single claim gives the answer: which of the needed passages nothing cites."""
    if not case.needs:
        return "nothing is cited" if not case.loose else "the citations belong to nothing"
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
    return frozenset(str(one) for one in found) if isinstance(found, Sequence) else frozenset()


def _named(ids: frozenset[str] | Sequence[str]) -> str:
    names = sorted(ids)
    return f"passage{'s' if len(names) > 1 else ''} {' and '.join(names)}"
