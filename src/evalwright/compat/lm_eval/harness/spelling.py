"""Suggests the right command where lm_eval's flags were given to a native command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import join
from types import MappingProxyType

from evalwright.compat.lm_eval.harness.flags import KINDS, split_names
from evalwright.compat.lm_eval.tables import TABLES

_NOT_NEEDED: dict[str, str] = TABLES["not_needed"]
_GENERATION = {"max_gen_toks": "max_tokens", "until": "stop"}
"""Generation settings that our tasks name differently."""
_PROVIDERS = {"": "hf", "hf-auto": "hf", "huggingface": "hf"}
"""Model classes whose provider has another name here; "" is lm_eval's default class."""


def _native_words(key: str, values: Sequence[str], foreign: bool) -> list[str] | None:
    """Translate a flag to ours; None if there is none. foreign: the tasks are lm_eval's."""
    pairs = [pair for text in values for pair in text.split(",")]
    if key == "model_args":
        model_arguments = [pair for pair in pairs if not pair.startswith("pretrained=")]
        return [word for pair in model_arguments for word in ("-M", pair)]
    if key == "gen_kwargs":
        named = [pair.partition("=")[::2] for pair in pairs]
        if foreign:
            return [
                word
                for name, value in named
                for word in ("-D", f"generation.{name}={value}")
            ]
        settings = [
            (_GENERATION.get(name, name), value)
            for name, value in named
            if name != "do_sample"
        ]
        return [
            word
            for name, value in settings
            for word in ("-T", f"answer.text.{name}={value}")
        ]
    first = values[0] if values else ""
    if key == "batch_size":
        return ["-M", f"batch_size={first.partition(':')[0]}"]
    if key == "system_instruction":
        return (
            ["-D", f"system={first}"] if foreign else ["-T", f"prompt.system={first}"]
        )
    words = TABLES["ours"].get(key)
    return None if words is None else [word.replace("{}", first) for word in words]


def _native_model(model: str, model_arguments: Sequence[str]) -> str:
    """Translate a class of lm_eval and its `pretrained` to our model's name."""
    if "/" in model:
        return model
    pairs = [pair for text in model_arguments for pair in text.split(",")]
    names = [
        name
        for key, _, name in (pair.partition("=") for pair in pairs)
        if key in ("pretrained", "model")
    ]
    if not names:
        return f"{model or 'PROVIDER'}/NAME"
    name = names[0]
    if not name.startswith((".", "/", "~")) and Path(name).is_dir():
        name = f"./{name}"
    return f"{_PROVIDERS.get(model, model)}/{name}"


def suggest_command(
    option: str,
    command: Sequence[str],
    arguments: Sequence[str],
    native: Mapping[str, bool],
    data_files: Mapping[str, bool] = MappingProxyType({}),
) -> str | None:
    """Suggest what to write instead of lm_eval's option; None for any other option.

    Args:
        option: the unknown option.
        command: the command's words, such as ("run",).
        arguments: everything that was typed after the command.
        native: the command's own options, and whether each takes a value.
        data_files: the data files among the arguments, such as "mine.csv", and whether the
            columns of each hold options.
    """
    name = _flag_name(option)
    if name not in KINDS or option in native:
        return None
    explanation = f"{option.partition('=')[0]} is an option of lm_eval."
    options = list(_split_options(arguments, native))
    typed = {_flag_name(flag): values for flag, values in options if flag}
    named = []
    for flag, values in options:
        if not flag:
            named += values
    model = next(iter(typed.get("model", ())), "")
    tasks = [task for text in typed.get("tasks", ()) for task in split_names(text)]
    chosen_files = [task for task in (*tasks, *named) if task in data_files]
    if (
        command == ("run",)
        and not chosen_files
        and "/" not in model
        and all(_flag_name(flag) in KINDS for flag in typed)
    ):
        task_option = ["--tasks", ",".join(named)] if named else []
        words = []
        for flag, values in options:
            if flag:
                words += [flag, *values]
        command_line = join(["evalwright", "lm-eval", "run", *task_option, *words])
        return f"{explanation} Write: {command_line}"
    foreign = bool(set(tasks) - data_files.keys()) or any(
        word.startswith("lm-eval:") for word in named
    )
    words = [
        task
        if ":" in task or task.endswith("yaml") or task in data_files
        else f"lm-eval:{task}"
        for task in tasks
    ]
    ignored: list[str] = []
    unsupported: list[str] = []
    for flag, values in options:
        key = _flag_name(flag)
        if key == "model" and chosen_files and flag in native:
            words += ["--model", _native_model(model, typed.get("model_args", ()))]
        elif not flag or flag in native:
            words += [flag, *values] if flag else values
        elif key in _NOT_NEEDED:
            ignored.append(f"{flag} ({_NOT_NEEDED[key]})")
        else:
            replacement = _native_words(key, values, foreign)
            if replacement is not None and {*replacement[:1]} <= native.keys():
                words += replacement
            elif key != "tasks":
                unsupported.append(flag)
    if unsupported:
        return (
            f"{explanation} `evalwright {' '.join(command)}` has nothing like"
            f" {', '.join(unsupported)}; `evalwright lm-eval --help` shows what takes it."
        )
    if command == ("run",) and chosen_files:
        if "model" not in typed:
            words += ["--model", _native_model("", typed.get("model_args", ()))]
        sets_mode = any(word.startswith("answer.mode=") for word in words)
        if not foreign and not sets_mode and all(map(data_files.get, chosen_files)):
            words += ["-T", "answer.mode=letter"]
    needless = f" Not needed: {', '.join(ignored)}." if ignored else ""
    command_line = join(["evalwright", *command, *words])
    return f"{explanation} Write: {command_line}{needless and '.'}{needless}"


def _flag_name(option: str) -> str:
    return option.partition("=")[0].removeprefix("--").replace("-", "_")


def _split_options(
    arguments: Sequence[str], native: Mapping[str, bool]
) -> Iterator[tuple[str, list[str]]]:
    """Yield (option, its values) in order; positional arguments have the option ""."""
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        if not word.startswith("-") or word == "-":
            yield "", [word]
            continue
        option, equals, value = word.partition("=")
        if equals:
            yield option, [value]
            continue
        kind = KINDS.get(_flag_name(option), "flag")
        takes_pairs = kind == "mapping" and option not in native
        takes_value = (
            native[option] if option in native else not kind.startswith("flag")
        )
        values = [remaining.pop(0)] if takes_value and remaining else []
        while (
            takes_pairs
            and remaining
            and "=" in remaining[0]
            and not remaining[0].startswith("-")
        ):
            values.append(remaining.pop(0))
        yield option, values
