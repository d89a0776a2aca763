"""Tasks whose answers are texts: short answers, summaries, translations, mathematics, long
procedures, programs, and a folder's own metrics.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright import (
    Answer,
    Ask,
    Failure,
    RequestFailed,
    Reward,
    Sample,
    Score,
    UsageError,
    bounded,
)
from evalwright.compat.sea_helm import foreign
from evalwright.compat.sea_helm.config import Row
from evalwright.compat.sea_helm.scoring import (
    LINE,
    METRICS,
    SAME_LINE,
    Made,
    Numbers,
    Scoring,
    SeaHelmRaised,
    math_verified,
    normalised,
    search,
)
from evalwright.extend import MetricSpec, Scored, ScoringError, TaskError, bind_scorer
from evalwright.metrics.corpus import SCORES
from evalwright.scorers import procedure
from evalwright.scorers.code.livecodebench import read_cases, run_test
from evalwright.scorers.code.sandbox import Outcome, run_script
from evalwright.scorers.code.unit_tests import program_slots
from evalwright.scorers.corpus import PARTS, require, statistics
from evalwright.scorers.label import NULL
from evalwright.scorers.rouge import f1_of_subsequence
from evalwright.scorers.text import published_words
from evalwright.scorers.token_f1 import overlap, words

if TYPE_CHECKING:
    from evalwright import Column
    from evalwright.statistics import Estimate

METRICX = "metricx"
"""The role of the model that says how good a translation is."""
_CHRF = "chrf++"
_WRAPPED = " \t\r\n*_`\"'“”‘’."


class Answers(Scoring):
    """F1 and exact match with the references.

    Published, of words, which in Thai and Chinese are found by a dictionary, against the first
    alone.
    """

    def prepare(self) -> None:
        language = self.task.language
        self._f1 = bind_scorer("token-f1", {"language": language}).function
        if self.task.published:
            published_words.require(
                language, f"The published F1 of the task '{self.task.name}'"
            )

    def published(self, row: Row, text: str) -> Score:
        language = self.task.language
        extracted = search(self.task.answer_tag + LINE, text)
        references_of_row = list(row["label"])
        references = (
            references_of_row[:1]
            if language in published_words.LIBRARIES
            else references_of_row
        )
        answer_tokens, *targets = (
            published_words.answer_words(phrase, language)
            for phrase in (extracted, *references)
        )
        f1 = max(
            overlap(answer_tokens, target)[0] if answer_tokens and target else 0.0
            for target in targets
        )
        contains_target = float(
            references_of_row[0].lower().strip(".") in extracted.lower().strip(".")
        )
        parts = {
            self.part: f1,
            "exact": float(answer_tokens in targets),
            "found": contains_target,
            "empty": float(not extracted),
        }
        return Score(f1, "", extracted, parts)

    def corrected(self, sample: Sample, answer: Answer) -> Scored:
        extracted = self.extract_answer(answer)
        language = self.task.language
        scored = self._f1(sample, replace(answer, text=extracted))
        answer_tokens = words(extracted, language)
        assert isinstance(scored, Score)
        exact = float(
            any(answer_tokens == words(target, language) for target in sample.targets)
        )
        return replace(
            scored, explanation=extracted, parts={"exact_match": exact, **scored.parts}
        )


class _WithChrf(Scoring):
    """What summaries and translations have in common: chrF++ where the task says so."""

    def prepare(self) -> None:
        self._chrf = bool(self.task.config.get("use_chrf_metric"))
        if self._chrf:
            require(what=f"chrF++ of the task '{self.task.name}'")
            self.names += ("chrf_score", "normalized_chrf_score")

    def counts(self, translation: str, targets: tuple[str, ...]) -> dict[str, float]:
        """What chrF++ is made of."""
        return (
            dict(
                zip(PARTS[_CHRF], statistics(_CHRF, translation, targets), strict=True)
            )
            if self._chrf
            else {}
        )

    def published(self, row: Row, text: str) -> Score:
        extracted = search(self.task.answer_tag + LINE, text)
        return Score(
            0.0,
            "",
            extracted,
            {
                "empty": float(not extracted),
                **self.counts(extracted, (str(row["label"]),)),
            },
        )

    def more(self, column: Column) -> Numbers:
        import numpy as np

        if not self._chrf:
            return {}
        score = float(
            SCORES[_CHRF](np.array([column.parts[name].sum() for name in PARTS[_CHRF]]))
        )
        return {"chrf_score": score, "normalized_chrf_score": score}

    def corrected_metrics(self) -> list[MetricSpec]:
        return super().corrected_metrics() + (
            [self.metric("chrf_score", _CHRF)] if self._chrf else []
        )


class Summaries(_WithChrf):
    """ROUGE-L of words by language. Published: the medians of 1,000 bootstrap means."""

    rouge = ("rougel_precision", "rougel_recall", "rougel_f1", "normalized_rougel_f1")

    def prepare(self) -> None:
        task = self.task
        super().prepare()
        self.names += self.rouge
        self._scorer = bind_scorer(
            "rouge", {"kind": "rougeL", "language": task.language}
        ).function
        if task.published and task.language == "th":
            published_words.require(
                "th", f"The published ROUGE of the task '{task.name}'"
            )

    def published(self, row: Row, text: str) -> Score:
        scored = super().published(row, text)
        texts = (str(row["label"]), scored.explanation)
        target_tokens, answer_tokens = (
            published_words.rouge_words(phrase, self.task.language) for phrase in texts
        )
        f1, precision, recall = f1_of_subsequence(target_tokens, answer_tokens)
        parts = {
            self.part: 100 * f1,
            "precision": precision,
            "recall": recall,
            "f1": f1,
        }
        return replace(scored, value=100 * f1, parts={**parts, **scored.parts})

    def corrected(self, sample: Sample, answer: Answer) -> Scored:
        extracted = self.extract_answer(answer)
        scored = self._scorer(sample, replace(answer, text=extracted))
        assert isinstance(scored, Score)
        return replace(
            scored,
            explanation=extracted,
            parts={**scored.parts, **self.counts(extracted, sample.targets)},
        )

    def more(self, column: Column) -> Numbers:
        import numpy as np

        matrix = np.stack(
            [column.parts[name] for name in ("precision", "recall", "f1")], axis=1
        )
        draws = np.random.RandomState(4156)
        n = len(matrix)
        means = [
            matrix[draws.choice(np.arange(n), size=n)].mean(axis=0) for _ in range(1000)
        ]
        middle = [100 * float(value) for value in np.percentile(means, 50, axis=0)]
        return super().more(column) | dict(
            zip(self.rouge, (*middle, middle[2]), strict=True)
        )


class Translations(_WithChrf):
    """MetricX's errors, 25 at worst.

    Published as 0 to 100; corrected as 0 to 1, against the best of the references. Else chrF++
    alone.
    """

    def prepare(self) -> None:
        task = self.task
        super().prepare()
        self.asks = bool(task.config.get("use_metricx_metric"))
        if self.asks:
            self.roles = (METRICX,)
            self.able = frozenset({"reward"})
            self.means = {
                self.part: (1, self.part),
                "metricx_wmt24_scores": (1, "errors"),
            }
        elif not task.published and not (self._chrf and "chrf" in task.metric):
            raise UsageError(
                f"The task '{task.name}' is a translation without MetricX, of which"
                " nothing is left to score."
            )

    def corrected(self, sample: Sample, answer: Answer) -> Scored:
        import numpy as np

        extracted = self.extract_answer(answer)
        counts = self.counts(extracted, sample.targets)
        return Score(
            float(SCORES[_CHRF](np.array(list(counts.values())))) / 100,
            "",
            extracted,
            counts,
        )

    def corrected_metrics(self) -> list[MetricSpec]:
        first, *others = super().corrected_metrics()
        return [first if self.asks else self.metric(self.task.metric, _CHRF), *others]

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """Corrected, an empty translation is the worst, and no request is sent for it."""
        row = self.row_of(sample)
        if self.task.published:
            scored = self.published(row, self.text(answer))
            errors = await _errors(ask, row, scored.explanation, str(row["label"]))
            worth = 100 * normalised(errors, 25, 0)
            return replace(
                scored,
                value=worth,
                parts={self.part: worth, "errors": errors, **scored.parts},
            )
        extracted = self.extract_answer(answer)
        errors = (
            min(
                [
                    await _errors(ask, row, extracted, target)
                    for target in sample.targets
                ]
            )
            if extracted
            else 25.0
        )
        worth = min(max(1 - errors / 25, 0.0), 1.0)
        return Score(
            worth,
            "",
            extracted,
            {self.task.metric: worth, **self.counts(extracted, sample.targets)},
        )


async def _errors(ask: Ask, row: Row, translation: str, reference: str) -> float:
    """How many errors MetricX sees in a translation, from 0 to 25.

    Raises ScoringError where its model gave no value, RequestFailed for one of another.
    """
    response = await ask(
        METRICX, Reward(str(row["prompts"][0]["text"]), translation, reference)
    )
    if not response.values:
        raise ScoringError("The reward model gave no value.")
    errors = response.values[1] if len(response.values) > 1 else -response.values[0]
    if not -0.5 <= errors <= 25.5:
        translation = (
            f"The model in the role '{METRICX}' gave the reward {response.values[0]:g},"
            " and MetricX's is from -25 to 0: it is another model."
        )
        raise RequestFailed(Failure("bad reply", "judge", translation))
    return errors


class Lines(Scoring):
    """The share of answers whose line behind the tag is the label.

    Corrected: the first line with text, marks around it aside.
    """

    def published(self, row: Row, text: str) -> Score:
        extracted = search(self.task.answer_tag + SAME_LINE, text)
        right = 100.0 * (str(row["label"]) == extracted)
        return Score(right, "", extracted, {self.part: right})

    def corrected(self, sample: Sample, answer: Answer) -> Scored:
        lines = (
            line.strip(_WRAPPED) for line in self.extract_answer(answer).splitlines()
        )
        first = next(filter(None, lines), "")
        right = any(
            first.split() == target.strip(_WRAPPED).split() for target in sample.targets
        )
        return Score(float(right), "correct" if right else "incorrect", first)


class Mathematics(Scoring):
    """The share of responses that math-verify reads as the label; corrected, those whose final
    answer is it.
    """

    def prepare(self) -> None:
        self._final = bind_scorer("final-answer", {"kind": "math"}).function

    def published(self, row: Row, text: str) -> Score:
        try:
            right = float(
                bounded.call(math_verified, str(row["label"]), text, seconds=30.0)
            )
        except bounded.LimitExceeded as error:
            raise ScoringError(f"math-verify was given up: {error}.") from None
        return Score(right, "", text.strip(), {self.part: right})

    def corrected(self, sample: Sample, answer: Answer) -> Scored:
        scored = self._final(sample, answer)
        if isinstance(scored, Score):
            return replace(scored, parts={})
        return scored  # type: ignore[return-value]


class Procedures(Scoring):
    """LongProc: the share of right results, and how far the procedure agrees. kind (in the table):
    as of the scorer `procedure`.
    """

    def published(self, row: Row, text: str) -> Score:
        try:
            right, partly, extracted = procedure.worth(
                self.entry["kind"], row["label"], text, published=True
            )
        except procedure.PublishedFailure as error:
            raise SeaHelmRaised(str(error)) from None
        parts = {
            self.part: partly,
            "right": right,
            "extracted": float(extracted is not None),
        }
        return Score(
            partly, "" if extracted is not None else NULL, extracted or "", parts
        )

    def corrected(self, sample: Sample, answer: Answer) -> Scored:
        return procedure.score_procedure(sample, answer.text, self.entry["kind"])

    def more(self, column: Column) -> Numbers:
        if (
            self.entry["kind"] == "route"
            and len(set(self.part_values(column, "extracted"))) == 2
        ):
            raise SeaHelmRaised(
                "AttributeError: 'float' object has no attribute 'strip'"
            )
        return {}


class Tables(Procedures):
    """Precision, recall and F1 of the rows of tables, and how many could not be read."""

    def published(self, row: Row, text: str) -> Score:
        extracted = procedure.inside("```tsv", "```", text, True)
        precision, recall, f1, error = procedure.table(
            str(row["label"]), extracted, True
        )
        parts = {
            self.part: f1,
            "precision": precision,
            "recall": recall,
            "error": float(bool(error)),
        }
        return Score(f1, error, extracted or "", parts)


_FAILED = "scorer error: ScoringError: "


class Foreign(Scoring):
    """A metric class of the folder: its number over all responses, and the mean of what it gives to
    each row by itself.
    """

    asks = True

    def prepare(self) -> None:
        foreign.check_trusted(self.task, self.task.scored_by, METRICS)
        # What is made to be averaged is from 0 to 100 there; as a share it has a part in totals
        # here.
        self._share = not self.task.published and self.task.metric.startswith(
            "normalized_"
        )
        self.task = replace(self.task, published=True)  # there is no other arithmetic

    def scorers_and_metrics(self) -> Made:
        scorers_made, (first, *others) = super().scorers_and_metrics()
        # The class decides what a reply without an answer is worth, as it decides on all others.
        scorers = [replace(scorer, own_faults=True) for scorer in scorers_made]
        return scorers, [
            replace(first, kind="accuracy") if self._share else first,
            *others,
        ]

    def _estimate(self, name: str, column: Column) -> Estimate:
        estimate = super()._estimate(name, column)
        return (
            replace(estimate, value=estimate.value / 100)
            if self._share and name == self.task.metric
            else estimate
        )

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer; other samples, and Ctrl-C, do not wait for it."""
        replies = (
            [self.text(answer)]
            if self.task.base
            else [response.text for response in answer.responses]
        )
        row = {**self.row_of(sample), "responses": replies}
        try:
            numbers, row_numbers = await asyncio.to_thread(
                foreign.foreign_numbers, self.task, [row]
            )
        except asyncio.CancelledError:
            foreign.end_workers()
            raise
        except TaskError as error:  # there is no other arithmetic to be named
            raise ScoringError(str(error)) from None
        row_score = row_numbers[0] if row_numbers else numbers
        value = (
            row_score.get(self.task.metric, next(iter(row_score.values())))
            if isinstance(row_score, Mapping)
            else row_score
        )
        # SEA-HELM's classes give rows 0 or 1 where the number is of 100.
        scale = 100 if self._share and (not row_numbers or value > 1) else 1
        return Score(float(value) / scale, item={"row": row})

    def raised(self, column: Column) -> str:
        """The first failure of a scorer: the class raises on a row, and so it does over all of
        them.
        """
        return next(
            (
                reason.removeprefix(_FAILED)
                for reason in column.failures
                if reason.startswith(_FAILED)
            ),
            "",
        )

    def more(self, column: Column) -> dict[str, float]:
        try:
            numbers, _ = foreign.foreign_numbers(
                self.task, [item["row"] for item in column.items]
            )
        except TaskError as error:
            raise SeaHelmRaised(str(error)) from None
        if not isinstance(numbers[self.task.metric], int | float):
            raise SeaHelmRaised(f"TypeError: '{self.task.metric}' is not a number")
        return {
            name: float(figure)
            for name, figure in numbers.items()
            if isinstance(figure, int | float)
        }


SECONDS = 6.0
ALL_SECONDS = 600.0
"""That a program has for a test, and for all of them."""
_BLOCK = re.compile(r"```(?:python)?\n((?:[^`]|`(?!``))*?)\n```", re.IGNORECASE)
_TYPES = (
    "import ast, json, sys\nfrom typing import TYPE_CHECKING, Dict, List, Tuple, Set,"
    " Sequence, Mapping\n"
)
_CALL = """
def _as(read, text):
    try:
        return read(text)
    except Exception:
        return text
try:
    _given, _wanted = '''<input>''', <output>
    _method = getattr(Solution(), '<name>') if 'class Solution' in '''<code>''' else <name>
    _lines = [_as(ast.literal_eval, one.strip()) for one in _given.split(chr(10)) if one.strip()]
    _found = _method(*(_lines if chr(10) in _given else [_as(json.loads, _given)]))
    _found = list(_found) if isinstance(_found, tuple) else _found
    print("TEST_PASSED" if _found == _as(json.loads, _wanted) else "TEST_FAILED:")
except Exception as _error:
    print("EXECUTION_ERROR:", _error)
"""


def _published(
    text: str, name: str, test: Mapping[str, str], seconds: float
) -> Outcome:
    blocks = _BLOCK.findall(text)
    code = blocks[-1].strip() if blocks else text
    test_input = test["input"]
    expected = test["output"].strip()
    program = (
        "import sys\nfrom io import StringIO\nsys.stdin ="
        f" StringIO('''{test_input}''')\n{code}\n"
    )
    if name:
        values = {"input": test_input, "output": expected, "name": name, "code": code}
        call = re.sub(
            "<(input|output|name|code)>",
            lambda placeholder: values[placeholder[1]],
            _CALL,
        )
        program = f"{_TYPES}{code}\n{call}"
    written, outcome = run_script(program, "", seconds=seconds)
    right = "TEST_PASSED" in written if name else written.strip() == expected
    return (
        outcome
        if outcome.label != "passed" or right
        else Outcome("failed", "another result")
    )


class Programs(Scoring):
    """The share of programs that pass all of their tests."""

    asks = True

    def prepare(self) -> None:
        self.options["seconds"] = SECONDS

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer.

        Raises ScoringError where the tests cannot be read, and where this system cannot shut a
        program in.
        """
        row = self.rows[int(sample.metadata["index"])]
        tests = read_cases(row, sample.id)
        name = str((row.get("metadata") or {}).get("func_name") or "")
        if name and not name.isidentifier():
            raise ScoringError(
                f"The sample '{sample.id}' asks for a function that is no name."
            )
        published = self.task.published
        once, text = (
            (_published, self.text(answer)) if published else (run_test, answer.text)
        )

        def judged() -> Outcome:
            until = time.monotonic() + ALL_SECONDS
            for number, test in enumerate(tests, 1):
                if time.monotonic() > until:
                    raise ScoringError(
                        f"The sample '{sample.id}' was given up after {ALL_SECONDS:.0f}"
                        f" seconds: its program had passed {number - 1} of {len(tests)}"
                        " tests."
                    )
                outcome = once(text, name, test, SECONDS)
                if outcome.label != "passed":
                    return Outcome(
                        outcome.label, f"test {number} of {len(tests)}: {outcome.why}"
                    )
            return Outcome("passed", f"all of {len(tests)} tests")

        async with program_slots():
            outcome = await asyncio.to_thread(judged)
        right = float(outcome.label == "passed")
        return Score(right, outcome.label, outcome.why, {self.part: right})
