"""Checks the citations of an answer, claim by claim.

Rules decide what they can decide for certain; for the rest a judge decides, if one is asked, or
else the likelier reading counts. Precision and recall are those of ALCE (Gao et al., 2023,
arXiv:2305.14627). A claim is supported if the passages that it cites, taken together, support it. A
citation is precise if its claim is supported and the passage contributes: it supports the claim
alone, or the remaining passages do not support it without this one.

If the sample names the passages that its answer needs (`metadata["citations"]`), these decide about
the claim that gives the right answer: "63 [1]" is not supported just because passage 1 has a 63 of
something else in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.grounding.claims import Claim, extract_claims, is_courtesy
from evalwright.scorers.grounding.evidence import (
    explain_missing_words,
    find_missing_quote,
    find_unknown_details,
    stands_in,
)
from evalwright.scorers.grounding.outcome import (
    ABSTAINED_RIGHTLY,
    ANSWERED_RIGHT,
    ANSWERED_WRONG,
    INELIGIBLE,
    MAX_PHRASE_WORDS,
    RIGHT,
    UNSUPPORTED,
    classify_answer,
    is_answerable,
    is_right,
)
from evalwright.scorers.text.declining import declines

Check = tuple[int, tuple[str, ...]]
"""The index of a claim, and the passages to check it against."""
Faults = Mapping[Check, str | None]
"""By check, why the passages do not support the claim: "" if they do, None if rules cannot tell."""


@dataclass(slots=True)
class Need:
    """A claim that needs a citation.

    Attributes:
        claim: the claim.
        cited: ids of passages that it cites.
        unknown: ids that it cites and no passage has.
        bearing: whether it gives the right answer.
    """

    claim: Claim
    cited: tuple[str, ...]
    unknown: tuple[str, ...]
    bearing: bool = False


@dataclass(slots=True)
class Case:
    """An answer with its class and claims.

    Attributes:
        sample: the sample.
        label: the class by the answer's text.
        why: how the class was recognised.
        unsure: why a careful reader might disagree.
        needs: the claims that need a citation.
        loose: cited ids that belong to no claim.
        gold: ids of the passages that the answer needs.
        everything: all ids that the claims cite.
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
    """Classify an answer and split it into claims."""
    ids = tuple(passage.id for passage in sample.passages)
    claims, loose = extract_claims(answer.text, ids)
    answer_class = classify_answer(sample, answer, claims)
    right = answer_class.label == ANSWERED_RIGHT
    needs = [
        Need(
            claim,
            tuple(name for name in claim.cited if name in ids),
            tuple(name for name in claim.cited if name not in ids),
        )
        for claim in claims
        if claim.words
        and answer_class.label not in (INELIGIBLE, ABSTAINED_RIGHTLY)
        and not declines(claim.text)
        and (not is_courtesy(claim) or (right and is_right(sample, claim.text)))
    ]
    everything = frozenset(name for need in needs for name in need.cited)
    if right:
        _mark_bearing(sample, needs)
    return Case(
        sample,
        answer_class.label,
        answer_class.why,
        answer_class.unsure,
        needs,
        loose,
        _needed_passages(sample),
        everything,
    )


def list_checks(case: Case) -> list[Check]:
    """List the checks that tell which claims are supported and which citations are precise."""
    pairs: list[Check] = []
    for claim_index, need in enumerate(case.needs):
        if not need.cited:
            continue
        id_sets = [need.cited]
        if len(need.cited) > 1 and not _is_decided_by_gold(case, need):
            id_sets += [(name,) for name in need.cited]
            id_sets += [
                tuple(cited for cited in need.cited if cited != name)
                for name in need.cited
            ]
        pairs += [(claim_index, ids) for ids in dict.fromkeys(id_sets)]
    return pairs


def find_certain_fault(case: Case, check: Check) -> str | None:
    """Return why the passages do not support the claim, if rules can tell.

    Returns:
        The reason, "" if they do support it, None if the rules cannot tell.
    """
    claim_index, ids = check
    need = case.needs[claim_index]
    sample = case.sample
    by_gold = _is_decided_by_gold(case, need)
    # The answer's own intermediate steps may stand in passages that other claims cite.
    visible_ids = case.everything | set(ids) if by_gold else set(ids)
    visible_texts = [
        passage.text for passage in sample.passages if passage.id in visible_ids
    ]
    quote = find_missing_quote(need.claim.text, (*visible_texts, sample.input))
    if quote:
        return f"the quote '{shortened(quote)}' is not there"
    if by_gold:
        if not case.gold.intersection(ids):
            return f"the answer is in {_name_passages(case.gold)}"
        lacking = case.gold - visible_ids
        if lacking:
            return f"it needs {_name_passages(lacking)} too"
        source_texts = (*visible_texts, sample.input, *sample.targets)
        return None if find_unknown_details(need.claim.text, source_texts) else ""
    if case.label == ANSWERED_WRONG and need.claim.words <= MAX_PHRASE_WORDS:
        if not is_answerable(sample):
            return "they do not answer the question"
        if sample.targets:
            return "this is not what they answer"
    return "" if stands_in(need.claim.text, visible_texts) else None


def find_likely_fault(case: Case, check: Check) -> str:
    """Return why the passages likely do not support the claim; "" if they likely do."""
    claim_index, ids = check
    need = case.needs[claim_index]
    sample = case.sample
    visible_ids = (
        case.everything | set(ids) if _is_decided_by_gold(case, need) else set(ids)
    )
    visible_texts = [
        passage.text for passage in sample.passages if passage.id in visible_ids
    ]
    # "Sixty-three" stands wherever 63 stands.
    target_stands = need.bearing and any(
        stands_in(target, visible_texts) for target in sample.targets
    )
    return explain_missing_words(
        need.claim.text,
        (*visible_texts, *sample.targets) if target_stands else visible_texts,
        sample.input,
    )


def build_premise(case: Case, check: Check) -> str:
    """Return the text of the passages that a judge sees."""
    claim_index, ids = check
    visible_ids = (
        case.gold & case.everything | set(ids)
        if _is_decided_by_gold(case, case.needs[claim_index])
        else set(ids)
    )
    return "\n\n".join(
        passage.text for passage in case.sample.passages if passage.id in visible_ids
    )


def build_hypothesis(case: Case, claim_index: int) -> str:
    """Return the claim as a judge sees it: a phrase comes with the question that it answers."""
    claim = case.needs[claim_index].claim
    return (
        f"{case.sample.input} {claim.text}".strip()
        if claim.words <= MAX_PHRASE_WORDS
        else claim.text
    )


def score_case(case: Case, rule_faults: Faults) -> Score:
    """Score an answer by its checks; an undecided check counts by its likelier reading.

    The score is unsure if the answer is right and only an undecided check keeps it from being
    supported.
    """
    faults = {
        check: find_likely_fault(case, check) if fault is None else fault
        for check, fault in rule_faults.items()
    }
    notes = _describe_faults(case, faults)
    unsure = case.unsure
    unclear = [
        need
        for claim_index, need in enumerate(case.needs)
        if need.cited and rule_faults[claim_index, need.cited] is None
    ]
    if (
        case.label == ANSWERED_RIGHT
        and unclear
        and not _describe_faults(case, rule_faults)
    ):
        text = shortened(unclear[0].claim.text)
        unsure = f"whether '{text}' follows from what it cites needs a judge"
    label = UNSUPPORTED if case.label == ANSWERED_RIGHT and notes else case.label
    parts = {"correct": float(case.label in RIGHT), **_count_citations(case, faults)}
    why = case.why if label != UNSUPPORTED else f"right ({case.why})"
    return Score(
        float(label in RIGHT),
        label,
        "; ".join([why, *notes[:3]]),
        {**parts, label: 1.0},
        unsure=unsure,
    )


def _describe_faults(case: Case, faults: Faults) -> list[str]:
    """Describe what is wrong with the answer's citations; an undecided check is not a fault."""
    notes = []
    for claim_index, need in enumerate(case.needs):
        fault = faults[claim_index, need.cited] if need.cited else ""
        notes.append(_describe_fault(need, fault))
    if case.label == ANSWERED_RIGHT:
        notes.append(_describe_uncited_gold(case))
    return [note for note in notes if note]


def _count_citations(case: Case, faults: Faults) -> dict[str, float]:
    """Count claims and citations, with precision, recall and F1 where they are defined."""
    cited = len(case.loose)
    claims = len(case.needs)
    supporting = supported = 0
    for claim_index, need in enumerate(case.needs):
        cited += len(need.cited) + len(need.unknown)
        supporting += sum(
            _is_precise(case, faults, claim_index, name) for name in need.cited
        )
        supported += bool(need.cited) and not faults[claim_index, need.cited]
    counts = {
        "cited": float(cited),
        "supporting": float(supporting),
        "claims": float(claims),
        "supported": float(supported),
    }
    precision = supporting / cited if cited else 0.0
    recall = supported / claims if claims else 0.0
    if cited:
        counts["precision"] = precision
    if claims:
        counts["recall"] = recall
    if cited or claims:
        total = precision + recall
        counts["f1"] = 2 * precision * recall / total if total else 0.0
    return counts


def _is_precise(case: Case, faults: Faults, claim_index: int, name: str) -> bool:
    need = case.needs[claim_index]
    fault = faults[claim_index, need.cited]
    if _is_decided_by_gold(case, need):
        # A needed passage is rightly cited even if another needed one is not.
        return name in case.gold and (not fault or fault.startswith("it needs "))
    if fault:
        return False
    if len(need.cited) == 1 or not faults[claim_index, (name,)]:
        return True
    return bool(
        faults[claim_index, tuple(cited for cited in need.cited if cited != name)]
    )


def _describe_fault(need: Need, fault: str | None) -> str:
    """Describe what is wrong with a claim's citations, "" if nothing is."""
    claim_text = f"'{shortened(need.claim.text)}'"
    if need.unknown:
        return (
            f"{claim_text} cites {_name_passages(need.unknown)}, which does not exist"
        )
    if not need.cited:
        return f"{claim_text} cites nothing"
    return f"{claim_text} cites {_name_passages(need.cited)}: {fault}" if fault else ""


def _mark_bearing(sample: Sample, needs: Sequence[Need]) -> None:
    """Mark the claims that give the answer.

    One without a citation repeats what another claim cites.
    """
    for need in needs:
        need.bearing = len(needs) == 1 or is_right(sample, need.claim.text)
    bearing = [need for need in needs if need.bearing]
    cited = tuple(dict.fromkeys(name for need in bearing for name in need.cited))
    for need in bearing:
        if not need.cited and not need.unknown:
            need.cited = cited


def _is_decided_by_gold(case: Case, need: Need) -> bool:
    return need.bearing and bool(case.gold)


def _describe_uncited_gold(case: Case) -> str:
    """Describe which needed passages nothing cites, if no single claim gives the answer."""
    if not case.needs:
        return (
            "nothing is cited" if not case.loose else "the citations belong to no claim"
        )
    if any(need.bearing for need in case.needs):
        return ""
    lacking = case.gold - case.everything
    return f"nothing cites {_name_passages(lacking)}" if lacking else ""


def _needed_passages(sample: Sample) -> frozenset[str]:
    citations = sample.metadata.get("citations")
    if not citations or not is_answerable(sample):
        return frozenset()
    if isinstance(citations, str):
        citations = [name.strip() for name in citations.split(",") if name.strip()]
    return (
        frozenset(str(name) for name in citations)
        if isinstance(citations, Sequence)
        else frozenset()
    )


def _name_passages(ids: frozenset[str] | Sequence[str]) -> str:
    names = sorted(ids)
    return f"passage{'s' if len(names) > 1 else ''} {' and '.join(names)}"
