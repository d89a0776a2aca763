"""What is not run, said in a sentence before any request is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.core.errors import ConfigurationError, EvalwrightError

Settings = Mapping[str, Any]
_CODE_METRIC = "code_eval"
_METRICS = ("evaluate", "evaluate_modules")
"""Where metrics of the library `evaluate` come from: itself, and what it loads."""


_UNSAFE = (
    "runs code that the model wrote (`unsafe_code`), by its own Python and without a sandbox, so it is not run, whatever is "
    "trusted. The tasks 'humaneval' and 'mbpp' here run such code in a sandbox: `evalwright run humaneval` or `evalwright run "
    "mbpp`; a task of your own takes the scorer 'unit-tests'."
)
_IMAGES = (
    "contains images or sound (`doc_to_image`, `doc_to_audio`). Requests here are text, and without the rest its scores "
    "would have no meaning, so it is not run."
)
_PROMPT = (
    "takes its prompt from a collection (`use_prompt: {prompt}`), in place of its own `doc_to_text` and `doc_to_target`. Such "
    "collections (promptsource) are not read: write the prompt into these keys."
)


def reasons(task: str, *, unsafe: bool, multimodal: bool, prompt: Any = None) -> list[EvalwrightError]:
    """Why a task is not run: it would run code that the model wrote, shows images or plays sound, or has its prompt elsewhere."""
    said = [text for text, wanted in ((_UNSAFE, unsafe), (_IMAGES, multimodal), (_PROMPT, prompt)) if wanted]
    return [ConfigurationError(f"The task '{task}' {text.replace('{prompt}', str(prompt))}") for text in said]


def refusals(task: str, settings: Settings) -> list[EvalwrightError]:
    """Why a task is not run. settings: with `!function` resolved."""
    shows = any(settings.get(key) is not None for key in ("doc_to_image", "doc_to_audio"))
    unsafe = bool(settings.get("unsafe_code")) or _scores_code(settings)
    return reasons(task, unsafe=unsafe, multimodal=shows, prompt=settings.get("use_prompt"))


def _functions(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _functions(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _functions(part)
    elif callable(value):
        yield value


def _scores_code(settings: Settings) -> bool:
    entries = settings.get("metric_list")
    names = [entry.get("metric") for entry in entries or () if isinstance(entry, Mapping)]
    return _CODE_METRIC in names or any(
        has_code_metric(getattr(function, "__globals__", None) or {}) for function in _functions(settings)
    )


def has_code_metric(known: Mapping[str, Any]) -> bool:
    """Whether a module's names hold the metric of the library `evaluate` that runs code in this process."""
    loaded = [value for value in list(known.values()) if type(value).__module__.startswith(_METRICS)]
    return any(getattr(value, "name", None) == _CODE_METRIC for value in loaded)
