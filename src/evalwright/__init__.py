"""Evalwright evaluates language models: any benchmark, any model, every number with its
uncertainty.

    from evalwright import evaluate, compare

    small, large = evaluate("factual", ["demo/small", "demo/large"])
    print(compare(small, large).conclusion)

Names load their module on first use, so that `import evalwright` costs next to nothing.
"""

from typing import TYPE_CHECKING

from evalwright._version import __version__
from evalwright.core.lazy import lazy_names

if TYPE_CHECKING:
    from evalwright.api import check_tasks, compare, leaderboard, open_run, plan
    from evalwright.core.ask import Ask
    from evalwright.core.deprecation import Undecided
    from evalwright.core.errors import (
        EvalwrightError,
        Failure,
        RequestFailed,
        UsageError,
    )
    from evalwright.core.requests import (
        Classify,
        Embed,
        Generate,
        LogLikelihood,
        Message,
        Reward,
        RollingLogLikelihood,
    )
    from evalwright.core.responses import Response, Usage
    from evalwright.core.samples import (
        Answer,
        NoScore,
        Passage,
        Sample,
        SampleRecord,
        Score,
    )
    from evalwright.core.tasks import Task
    from evalwright.evaluation.aggregating import aggregate_run
    from evalwright.evaluation.configuration import Configuration, ModelSpec
    from evalwright.evaluation.evaluating import evaluate, evaluate_async
    from evalwright.evaluation.rescoring import score_run
    from evalwright.metrics.registry import Column, metric
    from evalwright.models.model_interface import LocalModel, Model, Pacing, RemoteModel
    from evalwright.models.registry import model, open_model
    from evalwright.models.scripted import ScriptedModel
    from evalwright.runs.callbacks import Callback
    from evalwright.runs.merging import merge_runs
    from evalwright.runs.reader import Run
    from evalwright.scorers.registry import scorer
    from evalwright.strategies.registry import strategy
    from evalwright.tasks.decorator import task
    from evalwright.tasks.loading import load_task
    from evalwright.tools.function_tool import tool

_NAMES = {
    "api": "check_tasks compare leaderboard open_run plan",
    "core.ask": "Ask",
    "core.deprecation": "Undecided",
    "core.errors": "EvalwrightError Failure RequestFailed UsageError",
    "core.requests": (
        "Classify Embed Generate LogLikelihood Message Reward RollingLogLikelihood"
    ),
    "core.responses": "Response Usage",
    "core.samples": "Answer NoScore Passage Sample SampleRecord Score",
    "core.tasks": "Task",
    "evaluation.aggregating": "aggregate_run",
    "evaluation.configuration": "Configuration ModelSpec",
    "evaluation.evaluating": "evaluate evaluate_async",
    "evaluation.rescoring": "score_run",
    "metrics.registry": "Column metric",
    "models.model_interface": "LocalModel Model Pacing RemoteModel",
    "models.registry": "model open_model",
    "models.scripted": "ScriptedModel",
    "runs.callbacks": "Callback",
    "runs.merging": "merge_runs",
    "runs.reader": "Run",
    "scorers.registry": "scorer",
    "strategies.registry": "strategy",
    "tasks.decorator": "task",
    "tasks.loading": "load_task",
    "tools.function_tool": "tool",
}

__all__ = [
    "Answer",
    "Ask",
    "Callback",
    "Classify",
    "Column",
    "Configuration",
    "Embed",
    "EvalwrightError",
    "Failure",
    "Generate",
    "LocalModel",
    "LogLikelihood",
    "Message",
    "Model",
    "ModelSpec",
    "NoScore",
    "Pacing",
    "Passage",
    "RemoteModel",
    "RequestFailed",
    "Response",
    "Reward",
    "RollingLogLikelihood",
    "Run",
    "Sample",
    "SampleRecord",
    "Score",
    "ScriptedModel",
    "Task",
    "Undecided",
    "Usage",
    "UsageError",
    "__version__",
    "aggregate_run",
    "check_tasks",
    "compare",
    "evaluate",
    "evaluate_async",
    "leaderboard",
    "load_task",
    "merge_runs",
    "metric",
    "model",
    "open_model",
    "open_run",
    "plan",
    "score_run",
    "scorer",
    "strategy",
    "task",
    "tool",
]

if not TYPE_CHECKING:  # or a type checker would take every name for one that is there
    __getattr__, __dir__ = lazy_names(__name__, _NAMES)
