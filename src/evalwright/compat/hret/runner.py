"""`PipelineRunner`: loads what a configuration names, in HRET's order and with its guards, runs it
as a task and shows the run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from evalwright import Run, evaluate
from evalwright.compat.hret.call import JUDGE, Call, log
from evalwright.compat.hret.config import PipelineConfig
from evalwright.compat.hret.cot_parsers import parser_of
from evalwright.compat.hret.datasets import load_datasets
from evalwright.compat.hret.evaluation.base import BuiltIn, get_evaluator
from evalwright.compat.hret.examples import FewShot, Shots
from evalwright.compat.hret.methods import ALIASES
from evalwright.compat.hret.models import HuggingFaceModel, load_model
from evalwright.compat.hret.native import model_of
from evalwright.compat.hret.pipeline import roles_of, task_of
from evalwright.compat.hret.results import (
    Evaluation,
    failed_result,
    result_of,
    user_evaluation,
)
from evalwright.compat.hret.row_samples import Rows
from evalwright.compat.hret.rules import using
from evalwright.compat.hret.scaling_methods import load_scaling_method
from evalwright.compat.hret.scaling_methods.base import BuiltInMethod
from evalwright.compat.hret.utils.util import EvaluationResult
from evalwright.extend import TARGET

NO_SAMPLES = "No samples for evaluation after few-shot processing"

__all__ = ["PipelineConfig", "PipelineRunner"]


@dataclass(eq=False, repr=False)
class PipelineRunner(PipelineConfig):
    """One evaluation. scoring: `published` or `corrected`; None takes what `set_scoring` chose.
    instance: an object in place of the named model.

    dataset, model (a `multi` where there is a judge or a reward model), scaler (None for one reply
    to each row) and evaluator are loaded at once, in this order. roles: who plays them: a plug-in,
    or a model of this package. Raises what the parts raise when they are made: ValueError for a
    name that is not registered, or for what the dataset forbids.
    """

    _: KW_ONLY
    scoring: str | None = None
    instance: Any = None
    track: Sequence[str] = ()
    shots: Shots = field(init=False)

    def __post_init__(self) -> None:
        with using(self.scoring) as rules:
            super().__post_init__()
            self.rules = rules
            self.notes: list[str] = []
            arguments = rules.dataset_arguments(
                {"subset": self.subset, "split": self.split}, self.dataset_params or {}
            )
            self.dataset = load_datasets(self.dataset_name, **arguments)
            about = (
                self.dataset.info()
                if callable(getattr(self.dataset, "info", None))
                else {}
            )
            self.model = self._model() if self.instance is None else self.instance
            self.scaler = self._scaler(about.get("scaling_only"))
            self.evaluator = self._evaluator(about.get("evaluation_only"))
            for part in (self.model, getattr(self.model, "generate_model", None)):
                if isinstance(part, HuggingFaceModel):
                    part.by_options = bool(
                        getattr(self.evaluator, "requires_logits", False)
                    )
            self.roles = roles_of(self.model, self.model_backend_name, rules)

    @property
    def config(self) -> PipelineConfig:
        """What is run."""
        return self

    @property
    def method(self) -> str:
        """The evaluation method, by its own name."""
        return ALIASES.get(self.evaluation_method_name, self.evaluation_method_name)

    @property
    def judge(self) -> str:
        """The registry name of the judge, "" for none."""
        judge_config = (self.model_backend_params or {}).get("judge_model")
        named = (
            str(judge_config.get("name"))
            if isinstance(judge_config, Mapping)
            else self.model_backend_name
        )
        return named if JUDGE in self.roles else ""

    def note(self, text: str) -> None:
        """Say something about this call: in the log, and in the result's `info["notes"]`."""
        log.warning("%s", text)
        self.notes.append(text)

    def run(self, *, raise_on_error: bool = False) -> EvaluationResult:
        """The result; what fails as a whole is its metric `pipeline_error`, or is raised where
        raise_on_error says so.
        """
        with using(self.rules):
            try:
                return self._run(time.perf_counter())
            except Exception as error:
                if raise_on_error:
                    raise
                return failed_result(self.names(), error)

    def _run(self, began: float) -> EvaluationResult:
        call = self.call()
        self.shots = self._shots()
        task = task_of(call, self.shots, self.rules, self._recorded())
        if not len(task.samples):
            return self._empty_result()
        self._check_roles(task.roles)
        used = {
            role: model_of(self.roles[role])
            for role in sorted(task.roles)
            if role in self.roles
        }
        if hasattr(self.model, "judge_model"):
            for role in self.rules.unused_roles(call, used):
                self.notes.append(
                    f"The model for '{role}' has no part in '{self.method}' and was not"
                    " asked."
                )
        (run,) = evaluate(
            task, model_of(self.roles[TARGET]), roles=used, track=self.track
        )
        info = self._info(run, time.perf_counter() - began)
        return result_of(run, task, self.rules, info, self._user_evaluation())

    def call(self) -> Call:
        """What a task is made of."""
        is_ours = self._user_evaluation() is None
        has_own_scaler = self.scaler is not None and not isinstance(
            self.scaler, BuiltInMethod
        )
        return Call(
            dataset_name=self.dataset_name,
            model_name=self.model_backend_name,
            method=self.method,
            method_params=self.evaluator.parameters() if is_ours else None,
            language=self.target_lang if self.language_penalize else None,
            scaling=self.scaling_method_name,
            scaling_params=self.scaling_params or {},
            scaler=self.scaler if has_own_scaler else None,
            roles=self.roles,
            judge=self.judge,
            notes=self.notes,
        )

    def _model(self) -> Any:
        params = dict(self.model_backend_params or {})
        if self.custom_cot_parser is not None:
            params["cot_parser"] = parser_of(self.custom_cot_parser, rules=self.rules)
        return load_model(self.model_backend_name, **params)

    def _scaler(self, only: Any) -> Any:
        name = self.scaling_method_name
        if not name:
            if only is not None:
                raise ValueError(
                    f"Dataset '{self.dataset_name}' requires a scaling method from"
                    f" {only}, but scaling_method_name is None."
                )
            if self.scaling_params:
                self.note("scaling_params have no effect without scaling_method.")
            return None
        self._check_allowed("scaling", name, only)
        if name in self.rules.more_scaling_methods:
            return None
        return load_scaling_method(
            name, model=self.model, **(self.scaling_params or {})
        )

    def _evaluator(self, only: Any) -> Any:
        name = self.evaluation_method_name
        if only is True:
            raise ValueError(
                f"Dataset '{self.dataset_name}' requires a specific evaluation method,"
                " but no specific methods were provided."
            )
        self._check_allowed("evaluation", name, None if only is False else only)
        more = {"model": self.model} if name == "llm_judge" else {}
        return get_evaluator(name, **more, **(self.evaluator_params or {}))

    def _check_allowed(self, what: str, name: str, only: Any) -> None:
        """Raise ValueError for a method that the dataset forbids.

        Text is one name, where HRET takes it apart: "math" is in "math_match".
        """
        if only is None or name == only:
            return
        forbidden = ValueError(
            f"Dataset '{self.dataset_name}' only allows {what} methods {only}, but"
            f" got '{name}'."
        )
        if name not in only:
            raise forbidden
        if isinstance(only, str):
            self.rules.refuse(forbidden)

    def _shots(self) -> Shots:
        """The rows and the examples before them. Raises what the dataset raises."""
        rows = list(self.dataset.load())
        if self.num_few_shot <= 0:
            return Shots(rows)
        few_shot = FewShot(
            self.num_few_shot,
            self.split,
            self.few_shot_split,
            self.few_shot_instruction,
            self.few_shot_example_template,
            self._split_rows,
        )
        return self.rules.examples(rows, few_shot)

    def _split_rows(self, split: str) -> Rows:
        params = {
            key: value
            for key, value in (self.dataset_params or {}).items()
            if "few_shot" not in key
        }
        arguments = {"subset": self.subset, **params, "split": split}
        rows: Rows = load_datasets(self.dataset_name, **arguments).load()
        return rows

    def _recorded(self) -> dict[str, Any]:
        """What the task's definition says of the call."""
        return {
            name: value
            for name, value in self.settings().items()
            if name != "model_backend_params"
        }

    def _empty_result(self) -> EvaluationResult:
        self.rules.refuse(
            ValueError(f"The dataset '{self.dataset_name}' has no rows to evaluate.")
        )
        applied = {"num_few_shot_applied": self.shots.n, "error": NO_SAMPLES}
        return EvaluationResult({}, [], {**self.names(), **applied})

    def _check_roles(self, needed_roles: frozenset[str]) -> None:
        for role in sorted(needed_roles - {TARGET, *self.roles}):
            raise ValueError(
                f"'{self.method}' asks a model in the role '{role}', and none is named:"
                f" give {role}_model."
            )
        if TARGET not in self.roles:
            raise ValueError(
                "No model generates: name one besides the judge and the reward model."
            )

    def _user_evaluation(self) -> Evaluation | None:
        """A user's evaluator; None for one of HRET's."""
        if isinstance(self.evaluator, BuiltIn) and not self.evaluator.is_derived:
            return None
        language = self.target_lang if self.language_penalize else None
        return user_evaluation(self.evaluator, self.model, language)

    def _info(self, run: Run, seconds: float) -> dict[str, Any]:
        notes = [*getattr(self.dataset, "notes", []), *self.shots.notes, *self.notes]
        return {
            **self.names(),
            "scaling_method_name": self.scaling_method_name,
            "evaluation_method_name": self.evaluation_method_name,
            "elapsed_time_sec": seconds,
            "num_few_shot_configured": self.num_few_shot,
            "num_few_shot_applied": self.shots.n,
            "few_shot_source_split": self.shots.source,
            "language_penalize_enabled": self.language_penalize,
            "target_lang_for_penalty": (
                self.target_lang if self.language_penalize else None
            ),
            **({"notes": notes} if notes else {}),
            "scoring": self.rules.name,
            "run": str(run.folder),
            "model": run.model,
        }
