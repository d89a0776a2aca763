"""Filters model answers before scoring: pipelines of steps, each from lists to lists.

A step gets a list of answers for every request (one per repeat), and each request's row.
`take_first` ends most pipelines by reducing the list to one answer.
"""

from __future__ import annotations

import inspect
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evalwright.compat.lm_eval.tasks.task_yaml import Unavailable
from evalwright.extend import (
    LimitExceeded,
    RaisedInProcess,
    ScoringError,
    TaskError,
    call_with_limits,
    check_known,
    reraise_as,
)

Rows = Sequence[Mapping[str, Any]]


class Filter:
    """Base class of filters, also of those in task modules."""

    def __init__(self, **options: Any) -> None:
        """A filter without options takes none."""

    def apply(self, resps: Any, docs: Rows) -> Iterable[Any]:
        """Filter the answers to each request."""
        return list(resps)


_registered_filters: dict[str, type[Any]] = {}


def register_filter(name: str) -> Callable[[type[Any]], type[Any]]:
    """Register a filter class of a task module."""

    def register(cls: type[Any]) -> type[Any]:
        _registered_filters[name] = cls
        return cls

    return register


def _filter_class(name: str, take: Callable[..., Any]) -> type[Filter]:
    """Create a filter class from a function of one request's answers and the filter's options."""
    options = list(inspect.signature(take).parameters.values())[1:]

    def __init__(self: Any, **settings: Any) -> None:
        inspect.Signature(options).bind(**settings)
        self.settings = settings

    def apply(self: Any, resps: Any, docs: Rows) -> Iterable[Any]:
        return [take(answers, **self.settings) for answers in resps]

    return type(
        name, (Filter,), {"__init__": __init__, "apply": apply, "__doc__": take.__doc__}
    )


def _elementwise_filter(name: str, change: Callable[[Any], Any]) -> type[Filter]:
    """Create a filter class that changes each answer separately."""
    return _filter_class(name, lambda answers: [change(answer) for answer in answers])


def _first(answers: Sequence[Any]) -> Any:
    """The first answer, no longer a list."""
    return answers[0]


def _first_k(answers: Sequence[Any], *, k: int) -> Any:
    """The first `k` answers. Raises ValueError where there are fewer."""
    if len(answers) < k:
        raise ValueError(
            f"{k} answers are needed, and there are {len(answers)}: raise `repeats`"
        )
    return answers[:k]


def _majority(answers: Sequence[Any]) -> Any:
    """The commonest answer, the first seen of equals, in a list of one."""
    return [Counter(answers).most_common(1)[0][0]]


def _mapped(
    answers: Sequence[Any],
    mapping_dict: Mapping[Any, Any] | None = None,
    default_value: Any = None,
) -> Any:
    """Answers by a table; `default_value` where the table has none."""
    return [(mapping_dict or {}).get(answer, default_value) for answer in answers]


def _tags(
    answers: Sequence[Any],
    regex_pattern: str = "",
    group_select: int = 0,
    fallback: Any = None,
) -> Any:
    """The tags of ('word', 'TAG') pairs in an answer; its pattern is taken and not used, as
    published.
    """
    tags = []
    for answer in answers:
        pairs = (
            re.findall(r"\('([^']*)', '([^']*)'\)", answer)
            if isinstance(answer, str)
            else answer
        )
        tags.append(
            [tag for _, tag in pairs] or (["invalid"] if fallback is None else fallback)
        )
    return tags


def _matches(pattern: str, texts: Sequence[str]) -> list[list[Any]]:
    compiled = re.compile(pattern)
    return [compiled.findall(text) for text in texts]


def find_matches(pattern: str, answers: Sequence[Any]) -> list[list[Any]]:
    """Find a task file's pattern in each answer.

    Raises TaskError for an invalid pattern, ScoringError if matching takes too long.
    """
    texts = [answer if isinstance(answer, str) else "" for answer in answers]
    try:
        matches: list[list[Any]] = call_with_limits(
            _matches, pattern, texts, key=pattern
        )
    except RaisedInProcess as error:
        raise TaskError(f"The pattern {pattern!r} cannot be used: {error}.") from None
    except LimitExceeded as error:
        raise ScoringError(
            f"The pattern {pattern!r} cannot be used on this text: {error}."
        ) from None
    return matches


@lru_cache(maxsize=256)
def _check_pattern(pattern: str) -> None:
    find_matches(pattern, [])


def _remove_matches(patterns: Sequence[str], text: str) -> str:
    for pattern in patterns:
        text = re.sub(pattern, "", text)
    return text


def remove_matches(patterns: Sequence[str] | None, text: str) -> str:
    """Remove everything that a task file's patterns match. Raises ScoringError."""
    if not patterns:
        return text
    try:
        cleaned: str = call_with_limits(
            _remove_matches, list(patterns), text, key=tuple(patterns)
        )
    except (RaisedInProcess, LimitExceeded) as error:
        raise ScoringError(
            f"A pattern of {list(patterns)} cannot be used on this text: {error}."
        ) from None
    return cleaned


TakeFirst = _filter_class("TakeFirst", _first)


class RegexFilter(Filter):
    """Takes the match that `group_select` picks; `fallback` if there is none.

    Of several groups the first non-empty one counts.
    """

    def __init__(
        self,
        regex_pattern: str = r"#### (\-?[0-9\.\,]+)",
        group_select: int = 0,
        fallback: Any = "[invalid]",
    ) -> None:
        super().__init__()
        self.regex_pattern = regex_pattern
        self.group_select = group_select
        self.fallback = fallback
        _check_pattern(regex_pattern)

    @property
    def regex(self) -> re.Pattern[str]:
        """The compiled pattern, for task modules that build on this filter."""
        return re.compile(self.regex_pattern)

    def apply(self, resps: Any, docs: Rows) -> Iterable[Any]:
        matches = iter(
            find_matches(
                self.regex_pattern, [answer for answers in resps for answer in answers]
            )
        )
        return [
            [self._picked(next(matches), self.fallback) for _ in answers]
            for answers in resps
        ]

    def _picked(self, matches: Sequence[Any], fallback: Any) -> Any:
        if not matches:
            return fallback
        picked = matches[self.group_select]
        if isinstance(picked, tuple):
            picked = next((group for group in picked if group), fallback)
        return picked.strip()


class MultiChoiceRegexFilter(RegexFilter):
    """Takes the pattern's match, else a choice in the answer as "(B)", else a letter after a colon.

    The row needs a column `choices`.
    """

    def __init__(
        self,
        *arguments: Any,
        ignore_case: bool = False,
        ignore_punctuation: bool = False,
        regexes_to_ignore: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.ignore_case = ignore_case
        self.ignore_punctuation = ignore_punctuation
        self.regexes_to_ignore = regexes_to_ignore

    def apply(self, resps: Any, docs: Rows) -> Iterable[Any]:
        chosen = []
        for answers, doc in zip(resps, docs, strict=True):
            choices = [self._plain(choice.strip()) for choice in doc["choices"]]
            letters = [chr(ord("A") + index) for index in range(len(choices))]
            by_text = {
                text: f"({letter})"
                for text, letter in zip(choices, letters, strict=True)
            }
            # Every choice keeps its place, also one of equals; the longest is tried first, so none
            # is hidden by its beginning.
            text = "|".join(sorted(map(re.escape, choices), key=len, reverse=True))
            letter = rf":[\s]*({'|'.join(letters)})"
            chosen.append(
                [self._choice(answer, text, by_text, letter) for answer in answers]
            )
        return chosen

    def _choice(
        self, answer: Any, text: str, by_text: Mapping[str, str], letter: str
    ) -> Any:
        if matched := self._first_match(self.regex_pattern, answer):
            return matched
        if named := self._first_match(text, self._plain(answer)):
            return by_text.get(named, named)
        lettered = self._first_match(letter, answer)
        return f"({lettered})" if lettered else self.fallback

    def _first_match(self, pattern: str, answer: Any) -> Any:
        return self._picked(find_matches(pattern, [answer])[0], "")

    def _plain(self, text: str) -> str:
        text = remove_matches(self.regexes_to_ignore, text)
        if self.ignore_case:
            text = text.lower()
        return text.translate(_punctuation()) if self.ignore_punctuation else text


@lru_cache(maxsize=1)
def _punctuation() -> dict[int, None]:
    return {
        code: None
        for code in range(sys.maxunicode)
        if unicodedata.category(chr(code)).startswith("P")
    }


class CustomFilter(Filter):
    """Applies a function to all answers and rows."""

    def __init__(self, *, filter_fn: Callable[[Any, Rows], Iterable[Any]]) -> None:
        super().__init__()
        self.function = filter_fn

    def apply(self, resps: Any, docs: Rows) -> Iterable[Any]:
        return self.function(resps, docs)


_ENTITIES = (
    ("PER", "person people persons per"),
    ("LOC", "location counties places country continent loc"),
    ("ORG", "organization company org"),
    ("DATE", "time date"),
)
_ENTITY_ORDER = (
    "person location organization counties places people persons company country"
    " continent time date per loc org"
)


def named_entities(answer: str) -> str:
    """Shorten entity labels: "person: Ada$$location: Rome" becomes "per: Ada $ loc: rome".

    Empty entities are dropped.
    """
    short = {word: label for label, words in _ENTITIES for word in words.split()}
    text = answer.lower()
    for word in _ENTITY_ORDER.split():
        text = re.sub(rf"\b{word}\s*:", f"{short[word]}:", text)
    text = text.replace("$$", "$").rstrip("$").replace("\n", "$").strip()
    labelled = [
        (label.lower(), entity.strip())
        for label, entities in re.findall(r"\b(PER|LOC|ORG|DATE):\s*([^$]+)", text)
        for entity in entities.split(",")
    ]
    return " $ ".join(
        f"{label}: {entity}" for label, entity in labelled if entity.lower() != "none"
    )


BUILT_IN_FILTERS: dict[str, type[Filter]] = {
    "custom": CustomFilter,
    "format_span": _elementwise_filter("SpanFilter", named_entities),
    "lowercase": _elementwise_filter("LowercaseFilter", str.lower),
    "majority_vote": _filter_class("MajorityVote", _majority),
    "map": _filter_class("MapFilter", _mapped),
    "multi_choice_regex": MultiChoiceRegexFilter,
    "regex": RegexFilter,
    "regex_pos": _filter_class("TagsFilter", _tags),
    "remove_whitespace": _elementwise_filter("WhitespaceFilter", str.strip),
    "take_first": TakeFirst,
    "take_first_k": _filter_class("TakeFirstK", _first_k),
    "uppercase": _elementwise_filter("UppercaseFilter", str.upper),
}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A named sequence of filters, created anew on each call so that none keeps state."""

    name: str
    steps: tuple[Callable[[], Any], ...]

    def __call__(self, answers: Sequence[Any], doc: Mapping[str, Any]) -> list[Any]:
        """Filter one row's answers: a list for each request becomes one value."""
        filtered: Any = list(answers)
        docs = [doc] * len(filtered)
        for step in self.steps:
            filtered = step().apply(filtered, docs)
        return list(filtered)


DEFAULT = Pipeline("none", (TakeFirst,))


def build_pipelines(settings: Any, task: str) -> tuple[Pipeline, ...]:
    """Build the pipelines of `filter_list`, or the default one, which takes the first answer.

    Raises TaskError or UnknownName.
    """
    if settings is None:
        return (DEFAULT,)
    try:
        named = [
            (
                str(pipeline["name"]),
                tuple(_step(step, task) for step in pipeline["filter"]),
            )
            for pipeline in settings
        ]
        return tuple(Pipeline(name, steps) for name, steps in named)
    except (KeyError, TypeError) as error:
        raise TaskError(
            f"The task '{task}': every entry of `filter_list` has a `name` and a list"
            f" `filter` of steps with a `function` ({error})."
        ) from error


def _step(step: Mapping[str, Any], task: str) -> Callable[[], Any]:
    function = step["function"]
    options = {key: value for key, value in step.items() if key != "function"}
    cls: Any = function
    if isinstance(function, Unavailable):
        return lambda: cls(**options)
    if not callable(function):
        filters_by_name = {**BUILT_IN_FILTERS, **_registered_filters}
        # A task's module registers its own with the package, where that is installed.
        package_filters: Any = getattr(
            sys.modules.get("lm_eval.api.registry"), "filter_registry", {}
        )
        if function not in filters_by_name and function in package_filters:
            filters_by_name[function] = package_filters.get(function)
        check_known(f"filter (in the task '{task}')", [function], filters_by_name)
        cls = filters_by_name[function]
    with reraise_as(
        TaskError,
        f"The task '{task}': the filter '{function}' cannot be made",
        TypeError,
    ):
        cls(**options)
    return lambda: cls(**options)
