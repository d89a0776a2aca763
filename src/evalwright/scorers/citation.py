"""Citations: are the passages that an answer cites the ones that it should cite?"""

from __future__ import annotations

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.grounding.citations import cited_ids
from evalwright.scorers.text.normalise import answer_region


def citation(sample: Sample, answer: Answer) -> Score:
    """F1 of the cited passage ids against `metadata["citations"]`; parts "precision" and "recall".

    Ids are read as `grounding` reads them: [1], [1, 3], [1-3], (p1), "according to passage 2". An id that no passage has counts against precision
    and is named. Where the passages do not answer (`metadata["answerable"]` is false, or no citation is given as right),
    the score is 1 if nothing is cited, else 0. Labels "correct" (1), "partial", "incorrect" (0).
    Raises ScoringError where the sample does not say what should be cited.
    """
    gold = _gold(sample)
    passages = [passage.id for passage in sample.passages]
    # Citations may stand after a blank line ("Sources: [1]"), where a short answer has ended.
    cited = cited_ids(answer_region(answer.text, paragraphs=True), passages)
    unknown = [found for found in cited if found not in passages] if passages else []
    note = f"; no passage has the id {', '.join(unknown)}" if unknown else ""
    shown = ", ".join(cited) or "nothing"
    if not gold:
        right = not cited
        value = 1.0 if right else 0.0
        why = f"the passages do not answer, and {shown} is cited{note}"
        return Score(value, "correct" if right else "incorrect", why, {"precision": value, "recall": value})
    hits = len(gold.intersection(cited))
    precision = hits / len(cited) if cited else 0.0
    recall = hits / len(gold)
    value = 2 * precision * recall / (precision + recall) if hits else 0.0
    label = "correct" if value == 1.0 else "partial" if value else "incorrect"
    why = f"cites {shown}; should cite {', '.join(sorted(gold))}{note}"
    return Score(value, label, why, {"precision": precision, "recall": recall})


def _gold(sample: Sample) -> set[str]:
    metadata = sample.metadata
    if metadata.get("answerable") is False:
        return set()
    given = metadata.get("citations")
    if given is None:
        raise ScoringError(
            f"The sample '{sample.id}' does not say in metadata 'citations' which passages are right."
        )
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",") if part.strip()]
    return {str(one) for one in given}
