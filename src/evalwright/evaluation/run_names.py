"""Which runs a stopping rule names: by model, by prompt, by both, or by place.

Without prompts, or with one, a run is a model. With several, runs are numbered model by model, each
with all prompts: "small beats large" is then a question for each prompt, "short beats formal" for
each model, and "small with short beats small with formal" one about two runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from string import ascii_lowercase, ascii_uppercase
from typing import Literal, NamedTuple

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.evaluation.configuration import ModelSpec, PromptSpec
from evalwright.evaluation.prompts import named_after

WITH = " with "
"""Between a model and its prompt, as people write it."""
MAX_PAIRS = 100
"""Most pairs of a rule about all; a look at more would hold up the requests for seconds."""
DOT = " · "
"""Between a model and its prompt, as boards write it."""


def model_label(spec: ModelSpec) -> str:
    """Return what reports call a model."""
    return spec.label or spec.model


class _Side(NamedTuple):
    """What one side of a rule names; the number is that of a run, a model or a prompt."""

    kind: Literal["run", "model", "prompt"]
    number: int


class RunNames:
    """The runs of an evaluation by all names that rules may use.

    Args:
        specs: the models under test.
        prompts: prompts in place of the tasks' own.
    """

    def __init__(
        self, specs: Sequence[ModelSpec], prompts: Sequence[PromptSpec] = ()
    ) -> None:
        self._specs = specs
        self._prompts = prompts if len(prompts) > 1 else ()
        self.labels = [
            model_label(named_after(spec, prompt) if prompt else spec)
            for spec in specs
            for prompt in self._prompts or (None,)
        ]
        """What reports call each run."""

    def all_pairs(self, text: str) -> list[tuple[int, int]]:
        """Return every two runs.

        Raises:
            ConfigurationError: there is only one run, or there are too many.
        """
        if len(self.labels) < 2:
            raise ConfigurationError(
                f"The stopping rule '{text}' compares runs, and there is one:"
                f" {self.labels[0]}. Add a model (--model) or a prompt (--prompt)."
            )
        pairs = list(combinations(range(len(self.labels)), 2))
        if len(pairs) > MAX_PAIRS:
            raise ConfigurationError(
                f"The stopping rule '{text}' is about {len(pairs):,} pairs of"
                f" {len(self.labels)} runs, more than {MAX_PAIRS}. Name the pairs that"
                " matter, each with --until, or leave the rule out and compare the runs"
                " at their end."
            )
        return pairs

    def pairs(self, a: str, b: str, text: str) -> list[tuple[int, int]]:
        """Return the pairs of runs that a rule about `a` and `b` compares.

        Args:
            a: the first name.
            b: the second.
            text: the rule, for messages.

        Raises:
            ConfigurationError: both are the same, or cannot be compared.
            UnknownName: there is no such model or prompt.
        """
        first = self._side(a, text)
        second = self._side(b, text)
        if first == second:
            name = self._side_name(first)
            kind = "prompt" if first.kind == "prompt" else "model"
            kind = "run" if first.kind == "run" and self._prompts else kind
            raise ConfigurationError(
                f"In the stopping rule '{text}', '{a}' and '{b}' are the same"
                f" {kind}, {name}. Name two."
            )
        if first.kind != second.kind:
            raise ConfigurationError(
                f"The stopping rule '{text}' compares a {first.kind}, '{a}', with a"
                f" {second.kind}, '{b}'. Name two prompts, which are compared for each"
                " model; two models, which are compared for each prompt; or two runs,"
                f" as in '{self._example()}'."
            )
        n_prompts = max(len(self._prompts), 1)
        if first.kind == "run":
            return [(first.number, second.number)]
        if first.kind == "prompt":
            return [
                (start + first.number, start + second.number)
                for start in range(0, len(self.labels), n_prompts)
            ]
        return [
            (first.number * n_prompts + place, second.number * n_prompts + place)
            for place in range(n_prompts)
        ]

    def _side(self, name: str, text: str) -> _Side:
        """What a name stands for: a run, a model, or a prompt."""
        if not self._prompts:
            return _Side("run", self._model_number(name, text))
        if name in self.labels:
            return _Side("run", self.labels.index(name))
        for mark in (DOT, WITH):
            model, separator, prompt = name.rpartition(mark)
            if separator and prompt in self._prompt_names:
                model_number = self._model_number(model, text)
                return self._run(model_number, self._prompt_names.index(prompt))
        is_model = self._is_model(name)
        if name in self._prompt_names:
            if is_model:
                raise ConfigurationError(
                    f"The stopping rule '{text}' names '{name}', which is a model and a"
                    f" prompt. Name runs, as in '{self._example()}'."
                )
            return self._prompt(self._prompt_names.index(name))
        if is_model or len(self._specs) > 1:
            return _Side("model", self._model_number(name, text))
        for letters in (ascii_uppercase, ascii_lowercase):
            place = letters.find(name) if len(name) == 1 else -1
            if 0 <= place < len(self._prompts):
                return self._prompt(place)
        raise self._unknown(name)

    @property
    def _prompt_names(self) -> list[str]:
        return [prompt.name for prompt in self._prompts]

    def _prompt(self, number: int) -> _Side:
        """A prompt, which is a run where there is one model."""
        if len(self._specs) == 1:
            return _Side("run", number)
        return _Side("prompt", number)

    def _run(self, model: int, prompt: int) -> _Side:
        return _Side("run", model * len(self._prompts) + prompt)

    def _side_name(self, side: _Side) -> str:
        if side.kind == "run":
            return self.labels[side.number]
        if side.kind == "prompt":
            return self._prompt_names[side.number]
        return model_label(self._specs[side.number])

    def _is_model(self, name: str) -> bool:
        return any(name in names for names in self._model_names())

    def _model_names(self) -> list[list[str]]:
        return [
            [spec.label for spec in self._specs],
            [spec.model for spec in self._specs],
            [spec.model.partition("/")[2] for spec in self._specs],
        ]

    def _model_number(self, name: str, text: str) -> int:
        """Return the number of the model of that label, name, name without provider, or place."""
        letters = [
            list(ascii_uppercase[: len(self._specs)]),
            list(ascii_lowercase[: len(self._specs)]),
        ]
        for names in [*self._model_names(), *letters]:
            count = names.count(name)
            if count > 1:
                raise ConfigurationError(
                    f"The stopping rule '{text}' names '{name}', but {count} models have"
                    " that name. Give them labels, or write A for the first model, B for"
                    " the second."
                )
            if count:
                return names.index(name)
        raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownName:
        labels = [model_label(spec) for spec in self._specs]
        known = {*labels, *(spec.model for spec in self._specs)}
        if self._prompts:
            hint = (
                f"The models of this run are {', '.join(labels)}, its prompts"
                f" {', '.join(self._prompt_names)}. Name two of them, or two runs, as in"
                f" '{self._example()}'."
            )
            known |= {*self._prompt_names, *self.labels}
            return UnknownName(
                "model or prompt in the stopping rule", name, known, hint
            )
        places = ascii_uppercase[: min(len(self._specs), 26)]
        here = ", ".join(
            f"{letter} ({model})" for letter, model in zip(places, labels, strict=False)
        )
        hint = f"The models of this run are {here}. Add another with --model."
        return UnknownName("model in the stopping rule", name, known, hint)

    def _example(self) -> str:
        """Two runs, as a rule names them."""
        model = model_label(self._specs[0])
        first, second = self._prompt_names[:2]
        return f"{model}{WITH}{first} beats {model}{WITH}{second}"
