"""HRET's evaluation methods by their names, each with its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial

from evalwright.compat.hret.judge_types import Judging
from evalwright.compat.hret.patterns import check_patterns
from evalwright.compat.hret.registry import check_parameters, refuse_parameters
from evalwright.compat.hret.row_samples import Given
from evalwright.extend import ConfigurationError, UnknownName

LANGUAGE_PENALTY = "language_penalty"
"""A parameter that corrected scoring alone has."""
PENALTY = "language_penalizer"
"""The key of a sample that says how much of its reply is in the language."""
ALIASES = {"log_prob": "log_likelihood", "logit_based": "log_likelihood"}
"""Names that HRET's documents use for an evaluation method of another name."""


@dataclass
class Matching:
    """`string_match`, and with `compares_whole` off `partial_match`. The options are HRET's."""

    compares_whole: bool
    _: KW_ONLY
    ignore_case: bool = True
    ignore_punctuation: bool = False
    ignore_numbers: bool = False
    regexes_to_ignore: Sequence[str] | None = None
    extract_final_answer: bool = True
    mcqa: bool = True

    def __post_init__(self) -> None:
        self.patterns = check_patterns("regexes_to_ignore", self.regexes_to_ignore)


@dataclass
class Likelihood:
    """`log_likelihood`: the most probable option of a row."""


@dataclass
class Mathematics:
    """`math_match`: the values of two formulas."""

    _: KW_ONLY
    latex_only: bool = True
    expr_only: bool = False
    extract_final_answer: bool = True
    answer_patterns: Sequence[str] | None = None


EvaluationMethod = Matching | Likelihood | Mathematics | Judging
METHODS: Mapping[str, Callable[..., EvaluationMethod]] = {
    "string_match": partial(Matching, True),
    "partial_match": partial(Matching, False),
    "log_likelihood": Likelihood,
    "math_match": Mathematics,
    "llm_judge": Judging,
}
"""The methods by HRET's names."""


def parameters_of(name: str) -> list[str]:
    """The names of a method's parameters."""
    return list(inspect.signature(METHODS[name]).parameters)


def check_method(name: str, params: Given) -> None:
    """Raise UnknownName for a method that there is not, Unknown for a parameter that it does not
    take; of a judge, HRET takes any.
    """
    if name not in METHODS:
        raise UnknownName(
            "evaluation method", name, sorted(METHODS), f"Known: {', '.join(METHODS)}."
        )
    check = refuse_parameters if name == "llm_judge" else check_parameters
    known_names = [*parameters_of(name), LANGUAGE_PENALTY]
    check(f"the evaluation method '{name}'", params, known_names)


def method_of(name: str, params: Given) -> EvaluationMethod:
    """A method with those of its parameters that it has."""
    known_names = parameters_of(name)
    return METHODS[name](
        **{key: value for key, value in params.items() if key in known_names}
    )


def penalty_has_no_place() -> ConfigurationError:
    """The error for a language penalty where no verdict could be changed."""
    return ConfigurationError(
        f"The parameter '{LANGUAGE_PENALTY}' is of corrected scoring, and of methods"
        " whose answers are right or wrong."
    )
