"""The scorer `judge-correct`: does the answer say what the reference says? Correct, incorrect or not attempted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalwright.core.asking import Ask
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.asking import MAX_TOKENS, question, verdict
from evalwright.scorers.judge.forms import Form, choice, reason
from evalwright.scorers.judge.material import Exchange, exchanges, material, reference
from evalwright.scorers.judge.opinions import Opinion, Scale, judged
from evalwright.scorers.judge.options import check_common, roles_of
from evalwright.scorers.registry import checked

CLASSES: Mapping[str, str] = {
    "incorrect": "it commits itself to something else than the reference, or to several things of which one contradicts it; "
    "hedged or partly right answers that contradict the reference are incorrect",
    "not_attempted": "it commits itself to nothing that the question asks for: it declines, asks back, or stays so vague that the "
    "reference is neither said nor contradicted",
    "correct": "it says what the reference says, in whatever words, form, unit or language, and nothing that contradicts it",
}
"""What each class means, as a judge is told."""

_TASK = """\
You compare an answer with a reference that is known to be right. You do not answer the question yourself and do not correct the
reference: where you know better, the reference counts. What the question does not ask for need not be in the answer. Lines of
the reference that begin with "or:" are other forms of the same answer, any of which is enough. A number is right where it equals
the reference's, or rounds to it at the reference's own precision."""
_FORM = Form((reason(), choice("class", list(CLASSES))))


@checked(check_common, able=("generate",))
async def judge_correct(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    judges: Sequence[str] = ("judge",),
    show: Sequence[str] = ("question",),
    instructions: str = "",
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
) -> Score:
    """1 where the answer is correct by the sample's targets, else 0; labels "correct", "incorrect", "not_attempted".

    Several judges decide by majority; without one the label is "split" and the value their mean. An answer without text is not attempted, and no request is sent.
    Raises ScoringError where the sample has no target, RequestFailed where a judge failed or its verdict cannot be read.
    """
    (turn,) = exchanges(sample, answer, "last")
    known = reference(sample, turn)
    if not known:
        raise ScoringError(f"The sample '{sample.id}' has no target that its answer could be compared with.")
    roles = roles_of(judges)
    if not answer.text.strip():
        return Score(0.0, "not_attempted", "the answer is empty")
    shown = [*material(sample, turn, [one for one in show if one != "reference"]), ("reference", known)]
    body = "Of which class is the answer?\n" + "\n".join(
        f"- {name}: {said}" for name, said in CLASSES.items()
    )
    body += f"\n\n{instructions}" if instructions else ""

    async def opinion(role: str, one: Exchange) -> Opinion:
        asked = question(_TASK, [*shown, ("answer", one.answer)], body, _FORM, dict)
        given = await verdict(role, asked, ask, max_tokens, schema=schema)
        return Opinion(float(given["class"] == "correct"), given["class"], given["reason"])

    return await judged(roles, [turn], opinion, Scale(tuple(CLASSES)))
