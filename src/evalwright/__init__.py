"""Evalwright evaluates language models: any benchmark, any model, every number with its uncertainty.

    from evalwright import evaluate, compare

    small, large = evaluate("factual", ["demo/small", "demo/large"])
    print(compare(small, large).conclusion)

Names load their module on first use, so that `import evalwright` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalwright._version import __version__

if TYPE_CHECKING:
    from evalwright.api import compare, leaderboard, open_run, plan
    from evalwright.core.asking import Ask
    from evalwright.core.errors import EvalwrightError, Failure, RequestFailed, UsageError
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
    from evalwright.core.samples import Answer, NoScore, Passage, Sample, SampleRecord, Score, Undecided
    from evalwright.core.tasks import Task
    from evalwright.evaluation.aggregating import aggregate_run
    from evalwright.evaluation.configuration import Configuration, ModelSpec
    from evalwright.evaluation.rescoring import score_run
    from evalwright.evaluation.running import evaluate
    from evalwright.metrics.registry import Column, metric
    from evalwright.models.base import LocalModel, Model, Pacing, RemoteModel
    from evalwright.models.registry import model, open_model
    from evalwright.models.scripted import ScriptedModel
    from evalwright.runs.reader import Run
    from evalwright.scorers.registry import scorer
    from evalwright.tasks.decorator import task
    from evalwright.tasks.loading import load_task

_HOME = {
    "Answer": "core.samples",
    "Ask": "core.asking",
    "Classify": "core.requests",
    "Column": "metrics.registry",
    "Configuration": "evaluation.configuration",
    "Embed": "core.requests",
    "EvalwrightError": "core.errors",
    "Failure": "core.errors",
    "Generate": "core.requests",
    "LocalModel": "models.base",
    "LogLikelihood": "core.requests",
    "Message": "core.requests",
    "NoScore": "core.samples",
    "Model": "models.base",
    "ModelSpec": "evaluation.configuration",
    "Pacing": "models.base",
    "Passage": "core.samples",
    "RemoteModel": "models.base",
    "RequestFailed": "core.errors",
    "Response": "core.responses",
    "Reward": "core.requests",
    "RollingLogLikelihood": "core.requests",
    "Run": "runs.reader",
    "Sample": "core.samples",
    "SampleRecord": "core.samples",
    "Score": "core.samples",
    "ScriptedModel": "models.scripted",
    "Task": "core.tasks",
    "Undecided": "core.samples",
    "Usage": "core.responses",
    "UsageError": "core.errors",
    "aggregate_run": "evaluation.aggregating",
    "compare": "api",
    "evaluate": "evaluation.running",
    "leaderboard": "api",
    "load_task": "tasks.loading",
    "metric": "metrics.registry",
    "model": "models.registry",
    "open_model": "models.registry",
    "open_run": "api",
    "plan": "api",
    "score_run": "evaluation.rescoring",
    "scorer": "scorers.registry",
    "task": "tasks.decorator",
}

__all__ = [
    "Answer",
    "Ask",
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
    "compare",
    "evaluate",
    "leaderboard",
    "load_task",
    "metric",
    "model",
    "open_model",
    "open_run",
    "plan",
    "score_run",
    "scorer",
    "task",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
