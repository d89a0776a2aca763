"""Turns `answer` and the form of the prompt into a strategy and its sampling.

It also rejects settings that contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from string import ascii_uppercase
from typing import Any, Literal

from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.core.samples import Sample
from evalwright.core.tasks import Scorer, Strategy
from evalwright.scorers.registry import bind as bind_scorer
from evalwright.strategies.registry import MODES, bind, options_of
from evalwright.strategies.sampling import Sampling
from evalwright.strategies.task_setup import Setup
from evalwright.tasks import schema, templates
from evalwright.tasks.index import TaskIndex
from evalwright.tasks.prompts import Form, Renderer, per_sample
from evalwright.tasks.samples import Placed, RowError
from evalwright.tasks.sandbox_keys import (
    AGENTS,
    TaskSandbox,
    check_strategy_acts,
    read_limits,
)
from evalwright.tasks.yaml_files import Document, plain
from evalwright.tools.task_tools import TaskTools

PromptFormat = Literal["auto", "chat", "text"]

GENERATING = "-generate"
"""The suffix of bundled tasks whose answers are generated.

It is for tasks that have answers in both forms.
"""
TOKENS_IN_TEXT = 256
"""`max_tokens` of a text prompt without one: nothing else may end a base model's answer."""

_UNLESS_GIVEN: dict[str, Any] = {"temperature": 0.0, "stop": [], "num_beams": 1}
_LATER = frozenset(
    (
        "beam-search.early_stopping",
        "beam-search.length_penalty",
        "chain-of-thought.parser",
        "self-consistency.aggregator",
    )
)
"""Options that were added later.

A definition has them only if they are set, so that older definitions stay the same.
"""
_USER = {"letter": "{{ input }}\n{{ lettered }}\nAnswer:"}
_SHOT = {"letter": "{{ letter }}"}


def is_conversation(file: schema.TaskFile) -> bool:
    """Return whether the task has several user turns."""
    return isinstance(file.prompt.user, list) and len(file.prompt.user) > 1


def user_template(file: schema.TaskFile) -> str | list[str]:
    """Return `prompt.user`, or the mode's own template."""
    template = file.prompt.user
    return (
        template if template is not None else _USER.get(file.answer.mode, "{{ input }}")
    )


def shot_template(file: schema.TaskFile) -> str:
    """Return `prompt.assistant`, or the mode's own template."""
    template = file.prompt.assistant
    return (
        template
        if template is not None
        else _SHOT.get(file.answer.mode, "{{ target }}")
    )


def form_of(
    file: schema.TaskFile, document: Document, prompt_format: PromptFormat, chat: bool
) -> Form:
    """Return whether the prompt is messages or a text; `chat` tells if the model takes messages."""
    if file.answer.mode in ("perplexity", "classify"):
        if prompt_format == "chat":
            raise document.error(
                ("answer", "mode"),
                f"--format chat has no effect on '{file.answer.mode}', which reads a"
                " text. Leave it out.",
            )
        return "text"
    if is_conversation(file):
        if "text" in (prompt_format, file.prompt.format):
            raise document.error(
                ("prompt", "user"),
                "several user turns need the chat form of the prompt, not text.",
            )
        return "chat"
    if file.prompt.images is not None:
        if "text" in (prompt_format, file.prompt.format):
            raise document.error(
                ("prompt", "images"),
                "images need the chat form of the prompt, not text.",
            )
        return "chat"
    if file.tools is not None:
        if "text" in (prompt_format, file.prompt.format):
            raise document.error(
                ("tools",), "tools need the chat form of the prompt, not text."
            )
        return "chat"
    if file.strategy is not None and file.strategy.name in AGENTS:
        if "text" in (prompt_format, file.prompt.format):
            raise document.error(
                ("strategy",),
                f"the strategy '{file.strategy.name}' needs the chat form of the prompt,"
                " not text.",
            )
        return "chat"
    form = prompt_format if prompt_format != "auto" else file.prompt.format
    if form != "auto":
        return form
    return "chat" if chat and file.answer.mode == "generate" else "text"


def drawing_of(file: schema.TaskFile, form: Form) -> schema.Drawing:
    """Return how text is generated in this form of prompt.

    Later sources take precedence: defaults, `answer`, `answer.text` or `answer.chat`.
    """
    answer = file.answer
    shots = file.prompt.few_shot
    settings: dict[str, Any] = {
        **dict.fromkeys(schema.Drawing.model_fields),
        **_UNLESS_GIVEN,
    }
    if form == "text":
        settings["max_tokens"] = TOKENS_IN_TEXT
        if shots is not None and shots.count and file.prompt.separator:
            settings["stop"] = [file.prompt.separator]
    for layer in (answer, answer.text if form == "text" else answer.chat):
        for name in settings:
            value = getattr(layer, name, None)
            is_unset_temperature = (
                name == "temperature"
                and layer is not None
                and name in layer.model_fields_set
            )
            if value is not None or is_unset_temperature:
                settings[name] = value
    return schema.Drawing.model_construct(**settings)


def recorded_drawing(drawing: schema.Drawing) -> dict[str, Any]:
    """Return the sampling settings for a task's definition; options added later only if used."""
    settings = {
        name: value for name, value in drawing.model_dump().items() if value is not None
    }
    if drawing.num_beams == 1:
        del settings["num_beams"]
    return {**settings, "temperature": drawing.temperature}


def twin_hint(task: str) -> str:
    """Name the task that asks the same questions for answers of the other form, in a sentence.

    It is "" if there is none.
    """
    names = TaskIndex().names()
    if task.endswith(GENERATING) and task.removesuffix(GENERATING) in names:
        return (
            f" Use '{task.removesuffix(GENERATING)}', which scores the options by their"
            " likelihood."
        )
    if f"{task}{GENERATING}" in names:
        return f" Use '{task}{GENERATING}', where the model writes its answers."
    return ""


def check_mode(
    file: schema.TaskFile, document: Document, drawing: schema.Drawing
) -> None:
    """Raise TaskError for settings that contradict the mode."""
    answer = file.answer
    prompt = file.prompt
    mode = file.answer.mode
    if (mode == "given") != (answer.column is not None):
        raise document.error(
            ("answer", "column"),
            "the mode given needs `answer.column`, the column of the answers, and no"
            " other mode takes it.",
        )
    if mode != "generate":
        for name in sorted(answer.model_fields_set - {"mode", "column"}):
            if getattr(answer, name) != schema.Answer.model_fields[name].default:
                refusal = f"`answer.{name}` cannot be used with the mode {mode}."
                raise document.error(
                    ("answer", name), f"{refusal}{twin_hint(file.task)}"
                )
    elif drawing.num_beams != 1 and drawing.temperature != 0:
        raise document.error(
            ("answer", "num_beams"),
            "beams keep the most probable answers and draw none: leave"
            " `answer.temperature` at 0.",
        )
    elif drawing.reasoning_effort is not None and drawing.reasoning_budget is not None:
        raise document.error(
            ("answer", "reasoning_budget"),
            "give `reasoning_effort` or `reasoning_budget`, not both.",
        )
    if file.tools is not None and mode != "generate":
        raise document.error(("tools",), f"tools cannot be used with the mode {mode}.")
    if file.tools is None:
        for name in ("tool_choice", "parallel_tool_calls"):
            if getattr(drawing, name) is not None:
                raise document.error(
                    ("answer", name), f"`answer.{name}` needs `tools`."
                )
    if prompt.images is not None:
        if mode != "generate":
            raise document.error(
                ("prompt", "images"), f"images cannot be used with the mode {mode}."
            )
        if prompt.few_shot is not None and prompt.few_shot.count:
            raise document.error(
                ("prompt", "few_shot"), "`few_shot` cannot be used with images."
            )
    if is_conversation(file):
        if mode != "generate":
            raise document.error(
                ("prompt", "user"),
                f"several user turns cannot be used with the mode {mode}.",
            )
        for name in ("prefill", "few_shot"):
            if getattr(prompt, name):
                raise document.error(
                    ("prompt", name),
                    f"`{name}` cannot be used with several user turns.",
                )
    if mode in ("perplexity", "classify"):
        alone = (
            "the text alone is scored"
            if mode == "perplexity"
            else "a pair of texts is judged as it is"
        )
        for name in ("system", "prefill", "few_shot"):
            if getattr(prompt, name):
                raise document.error(
                    ("prompt", name),
                    f"`{name}` cannot be used with the mode {mode}: {alone}.",
                )


def sample_check(answer: schema.Answer, strategy: Strategy) -> Callable[[Sample], None]:
    """Return a function that raises RowError if a sample lacks what mode or strategy needs."""
    lacks: Callable[[Sample], str] | None = getattr(strategy, "lacks", None)
    check_needs = _mode_check(answer)

    def check(sample: Sample) -> None:
        if lacks is not None and (problem := lacks(sample)):
            raise RowError(problem)
        if check_needs is not None:
            check_needs(sample)

    return check


def _mode_check(answer: schema.Answer) -> Callable[[Sample], None] | None:
    """Return the check of what the mode of answering needs; None if it needs nothing."""
    if answer.mode == "classify":
        return _check_pair
    if answer.mode == "given":
        return partial(_check_given, answer.column or "")
    if answer.mode in ("likelihood", "letter"):
        return partial(_check_options, answer.mode)
    if answer.mode == "continuation":
        return _check_continuation
    return None


def _check_given(column: str, sample: Sample) -> None:
    if not isinstance(sample.row.get(column), str | int | float):
        raise RowError(
            f"the row has no answer in the column '{column}' (`answer.column`)"
        )


def _check_options(mode: str, sample: Sample) -> None:
    if not sample.choices:
        raise RowError(
            f"the row has no choices, which the mode {mode} needs (`sample.choices`)"
        )
    if not sample.gold:
        raise RowError("the row has no target, so no choice is right (`sample.target`)")
    if mode == "letter" and len(sample.choices) > len(ascii_uppercase):
        raise RowError(
            f"the row has {len(sample.choices)} choices, and there are 26 letters"
        )


def _check_continuation(sample: Sample) -> None:
    if not sample.target:
        raise RowError(
            "the row has no target to compute the likelihood of (`sample.target`)"
        )


def _check_pair(sample: Sample) -> None:
    if not any(passage.text.strip() for passage in sample.passages):
        raise RowError(
            "the row has no passages to judge the text by (`sample.passages`)"
        )
    if len(sample.choices) < 2:
        raise RowError(
            "the row has no choices, which the mode classify needs: the classes"
            " (`sample.choices`)"
        )
    if len(sample.gold) != 1:
        raise RowError("the row has not exactly one right class (`sample.target`)")


def with_mode_of_strategy(file: schema.TaskFile, document: Document) -> schema.TaskFile:
    """Return the file with the mode that belongs to its strategy.

    Raises:
        TaskError: mode and strategy contradict each other.
    """
    if file.strategy is None:
        return file
    mode = MODES.get(file.strategy.name, "generate")
    answer = file.answer
    if "mode" in answer.model_fields_set and answer.mode != mode:
        raise document.error(
            ("strategy",),
            f"the strategy '{file.strategy.name}' is of the mode {mode}, and"
            f" `answer.mode` is {answer.mode}: leave one out.",
        )
    column = file.strategy.options.get("column") if mode == "given" else answer.column
    return file.model_copy(
        update={"answer": answer.model_copy(update={"mode": mode, "column": column})}
    )


def strategy_of(
    file: schema.TaskFile,
    document: Document,
    form: Form,
    drawing: schema.Drawing,
    renderer: Renderer,
    scorers: Sequence[Scorer],
    tools: TaskTools | None = None,
    sandbox: TaskSandbox | None = None,
) -> Strategy:
    """Make the strategy that the file names, or that of its mode, with the renderer.

    Raises:
        TaskError: the strategy or its options do not fit.
    """
    mode = file.answer.mode
    prompt = file.prompt
    has_several_turns = is_conversation(file)
    setup = Setup(
        renderer,
        _sampling(drawing),
        renderer.turns if has_several_turns else None,
        delimiter=prompt.delimiter,
        separator=prompt.separator,
        reader=lambda use: _reader(use, scorers),
        scorer=lambda use: _scorer(use, scorers),
        tools=tools,
        over_rows=lambda option: _over_rows(option, document, renderer),
        sandbox=None if sandbox is None else sandbox.plan,
        limits=read_limits(file),
    )
    name = "conversation" if has_several_turns else "single-draw"
    if mode != "generate":
        name = next(
            strategy_name
            for strategy_name, strategy_mode in MODES.items()
            if strategy_mode == mode
        )
    options: dict[str, Any] = (
        {} if file.answer.column is None else {"column": file.answer.column}
    )
    if file.strategy is not None:
        name = file.strategy.name
        options = plain(file.strategy.options)
    try:
        strategy = bind(name, setup, options)
    except UsageError as error:
        raise document.error(("strategy",), str(error)) from None
    if tools is not None and not getattr(strategy, "offers_tools", False):
        raise document.error(
            ("strategy",),
            f"the strategy '{name}' offers no tools: use 'tool-loop', or 'single-draw' for"
            " the calls of the first reply.",
        )
    check_strategy_acts(
        file, document, tools, uses_sandbox=_uses_sandbox(strategy, name)
    )
    if getattr(strategy, "samples_itself", False):
        _check_no_sampling(file, document, name)
    drawn = getattr(strategy, "sampling", None)
    if file.answer.draws > 1 and drawn is not None and drawn.temperature == 0:
        raise document.error(
            ("answer", "draws"),
            "several draws need a temperature above 0; otherwise they are all the"
            " same.",
        )
    if form == "chat":
        strategy.needs = strategy.needs | {"chat"}
    return strategy


def _check_no_sampling(file: schema.TaskFile, document: Document, name: str) -> None:
    """Raise TaskError for settings of sampling that a strategy does not use."""
    for key in schema.Drawing.model_fields:
        if key in file.answer.model_fields_set:
            raise document.error(
                ("answer", key),
                f"the program of '{name}' says itself how the model samples, so"
                f" `answer.{key}` has no effect: leave it out.",
            )


def _uses_sandbox(strategy: Any, name: str) -> bool:
    """Return whether a strategy, or that of its draws, acts in a sandbox."""
    if name in AGENTS or getattr(strategy, "uses_sandbox", False):
        return True
    inner = getattr(strategy, "inner", None)
    return inner is not None and _uses_sandbox(inner, "")


def _over_rows(
    option: Any, document: Document, renderer: Renderer
) -> Callable[[Sample], Any]:
    """Return a function that fills the columns of a sample into a strategy's option."""
    render = Placed(templates.structure, option, "strategy", document, ("strategy",))
    return lambda sample: per_sample(
        sample, lambda sample: render(renderer.context(sample))
    )


def _sampling(drawing: schema.Drawing) -> Sampling:
    return Sampling(**{**drawing.model_dump(), "stop": tuple(drawing.stop or ())})


def recorded_strategy(file: schema.TaskFile) -> dict[str, Any]:
    """Return strategy and options for a task's definition; nothing if the mode implies them."""
    if file.strategy is None or file.strategy.name in MODES:
        return {}
    name = file.strategy.name
    given_options = file.strategy.options
    options = {
        key: value
        for key, value in options_of(name, given_options).items()
        if key in given_options or f"{name}.{key}" not in _LATER
    }
    return {"strategy": {"name": name, "options": options}}


def _reader(use: Any, scorers: Sequence[Scorer]) -> Any:
    """Return how answers are read.

    They are read by the task's first scorer, by another of its scorers, or by any scorer with
    options.
    """
    from evalwright.scorers.reading import reader

    kind, options = (
        (scorers[0].kind, scorers[0].options) if use is None else _use_of(use, scorers)
    )
    return reader(kind, options)


def _scorer(use: Any, scorers: Sequence[Scorer]) -> Scorer:
    return bind_scorer(*_use_of(use, scorers))


def _use_of(use: Any, scorers: Sequence[Scorer]) -> tuple[str, Mapping[str, Any]]:
    if isinstance(use, str):
        return next(
            ((scorer.kind, scorer.options) for scorer in scorers if scorer.name == use),
            (use, {}),
        )
    if isinstance(use, Mapping) and isinstance(use.get("scorer"), str):
        return use["scorer"], {
            name: value for name, value in use.items() if name != "scorer"
        }
    raise ConfigurationError(
        "A scorer is named by a name, or by {scorer: NAME, option: value}, not"
        f" {use!r}."
    )
