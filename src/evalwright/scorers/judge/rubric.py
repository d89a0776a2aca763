"""The scorer `judge-rubric`: which criteria does an answer meet, and what are they worth?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.criteria import Criterion, read_criteria, share_of_points
from evalwright.scorers.judge.forms import Form, choice, group, reason
from evalwright.scorers.judge.judge_questions import (
    MAX_TOKENS,
    build_question,
    request_verdict,
)
from evalwright.scorers.judge.material import Exchange, collect_material, list_exchanges
from evalwright.scorers.judge.opinions import (
    Opinion,
    check_parts,
    pass_or_fail,
    score_opinions,
)
from evalwright.scorers.judge.options import (
    SHOWN,
    check_choice,
    check_common,
    check_roles,
)
from evalwright.scorers.judge.panel import Combine
from evalwright.scorers.registry import checked
from evalwright.strategies.several import gather_all

_TASK = """\
You judge an answer by criteria, each on its own: by what the answer says, not by how sure, \
fluent, long or polite it is, unless the
criterion asks for that. A criterion of several demands is met only where all of them are."""


def _check_options(options: Mapping[str, Any]) -> None:
    check_common(options)
    check_choice(options["calls"], "calls", ("one", "each"))
    read_criteria(["any"], "The option 'classes'", options["classes"])
    if options["criteria"]:
        rubric = read_criteria(
            options["criteria"], "The option 'criteria'", options["classes"]
        )
        check_parts(
            [criterion.name for criterion in rubric],
            check_roles(options["judges"]),
            options["turns"],
        )
    elif not isinstance(options["criteria"], list | tuple):
        raise ConfigurationError(
            f"The option 'criteria' is a list of texts, not {options['criteria']!r}."
        )


@checked(_check_options, able=("generate",))
async def judge_rubric(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    criteria: Sequence[Any] = (),
    classes: Mapping[str, float] | None = None,
    calls: Literal["one", "each"] = "one",
    threshold: float = 0.5,
    turns: Literal["last", "each"] = "last",
    judges: Sequence[str] = ("judge",),
    combine: Combine = "",
    needs: int = 0,
    show: Sequence[str] = SHOWN,
    instructions: str = "",
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
) -> Score:
    """Score the share of the rubric's points that the answer earns.

    Labels: "pass" from `threshold` on, else "fail". Parts: the credit for each criterion, by its
    name.

    Args:
        criteria: texts, or mappings with text, name, points (negative for what is bad) or severity
            (low 1, medium 5, high 10 points), and classes with the share of the points that each
            earns. Criteria in the sample's metadata `criteria` are added.
        classes: default classes of criteria; without it "not met" and "met".
        calls: one request for all criteria, or one for each.
        threshold: the least score at which the answer passes.
        turns: judge the last reply of a conversation, or average over all of them.
        judges: roles of the judges.
        combine: by the "mean" of the judges' scores or by "majority"; by default the mean.
        needs: how many judges must give a verdict; 0 for all.
        show: parts of the sample that the judge sees.
        instructions: added to the judge's task.
        max_tokens: limit on a verdict's length.
        schema: send a JSON schema if the provider enforces it.

    Raises:
        RequestFailed: a judge failed, or its verdict cannot be read.
    """
    rubric = collect_criteria(sample, criteria, classes)
    roles = check_roles(judges)
    try:
        check_parts([criterion.name for criterion in rubric], roles, turns)
    except ConfigurationError as error:
        raise ScoringError(str(error)) from None

    async def opinion(role: str, turn: Exchange) -> Opinion:
        tagged_texts = [*collect_material(sample, turn, show), ("answer", turn.answer)]
        batches = (
            [[criterion] for criterion in rubric] if calls == "each" else [list(rubric)]
        )
        questions = [
            _rubric_question(batch, tagged_texts, instructions) for batch in batches
        ]
        verdicts = await gather_all(
            [
                request_verdict(
                    role, question, ask, max_tokens, schema=schema, images=turn.images
                )
                for question in questions
            ]
        )
        return _combine_criteria(
            rubric,
            {
                name: class_and_reason
                for verdict in verdicts
                for name, class_and_reason in verdict.items()
            },
            threshold,
        )

    return await score_opinions(
        roles,
        list_exchanges(sample, answer, turns),
        opinion,
        pass_or_fail(threshold, combine),
        needs,
    )


def collect_criteria(
    sample: Sample, task_criteria: Sequence[Any], classes: Any = None
) -> tuple[Criterion, ...]:
    """Collect a sample's rubric: the task's criteria, then those of the sample.

    Raises:
        ScoringError: there are none, or they cannot be used.
    """
    sample_criteria = sample.metadata.get("criteria") or ()
    if isinstance(sample_criteria, str):
        sample_criteria = (sample_criteria,)
    if not sample_criteria and not task_criteria:
        raise ScoringError(
            f"The sample '{sample.id}' has no criteria, in the option or metadata"
            " 'criteria'."
        )
    try:
        return read_criteria(
            [*task_criteria, *sample_criteria], "The list of criteria", classes
        )
    except (ConfigurationError, TypeError) as error:
        raise ScoringError(str(error)) from None


CriterionVerdicts = dict[str, tuple[str, str]]
"""By the name of a criterion: the class that a judge chose, and its reason."""


def _rubric_question(
    batch: Sequence[Criterion],
    tagged_texts: Sequence[tuple[str, str]],
    instructions: str,
) -> Any:
    keys = {f"c{number}": criterion for number, criterion in enumerate(batch, 1)}
    listed = "\n".join(f"{key}: {criterion.text}" for key, criterion in keys.items())
    fields = [
        group(key, [reason(), choice("class", list(criterion.classes))])
        for key, criterion in keys.items()
    ]

    def parse(fields_by_key: dict[str, Any]) -> CriterionVerdicts:
        return {
            criterion.name: (fields_by_key[key]["class"], fields_by_key[key]["reason"])
            for key, criterion in keys.items()
        }

    body = (
        "Judge the answer by"
        f" {'this criterion' if len(batch) == 1 else 'these criteria'}:\n{listed}"
    )
    body += f"\n\n{instructions}" if instructions else ""
    return build_question(_TASK, tagged_texts, body, Form(tuple(fields)), parse)


def _combine_criteria(
    criteria: Sequence[Criterion], verdicts: CriterionVerdicts, threshold: float
) -> Opinion:
    credits = {
        criterion.name: criterion.classes[verdicts[criterion.name][0]]
        for criterion in criteria
    }
    share = share_of_points(criteria, credits)
    explanation = "; ".join(
        f"{criterion.name.rstrip('.')}: {' - '.join(filter(None, verdicts[criterion.name]))}"
        for criterion in criteria
    )
    return Opinion(
        share, "pass" if share >= threshold else "fail", explanation, credits
    )
