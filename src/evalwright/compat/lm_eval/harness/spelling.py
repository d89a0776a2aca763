"""A native command that was given lm_eval's flags: the line that was meant, with its own flags or as `evalwright lm-eval`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import join

from evalwright.compat.lm_eval.harness.flags import KINDS, names_of
from evalwright.compat.lm_eval.tables import TABLES

_NOT_NEEDED: dict[str, str] = TABLES["not_needed"]
_GENERATION = {"max_gen_toks": "max_tokens", "until": "stop"}
"""Settings of generation that are called otherwise in our tasks."""


def _arguments(values: Sequence[str], foreign: bool) -> list[str]:
    found = [one for value in values for one in value.split(",") if not one.startswith("pretrained=")]
    return [word for one in found for word in ("-M", one)]


def _generation(values: Sequence[str], foreign: bool) -> list[str]:
    words = []
    for name, _, value in (one.partition("=") for text in values for one in text.split(",")):
        if foreign:
            words += ["-D", f"generation.{name}={value}"]
        elif name != "do_sample":
            words += ["-T", f"answer.text.{_GENERATION.get(name, name)}={value}"]
    return words


def _batch_size(values: Sequence[str], foreign: bool) -> list[str]:
    return ["-M", f"batch_size={values[0].partition(':')[0]}"]


_OURS: Mapping[str, Callable[[Sequence[str], bool], list[str]]] = {
    "model_args": _arguments,
    "gen_kwargs": _generation,
    "batch_size": _batch_size,
    "num_fewshot": lambda values, foreign: ["--num-fewshot", values[0]],
    "device": lambda values, foreign: ["-M", f"device={values[0]}"],
    "output_path": lambda values, foreign: ["--out", values[0]],
    "apply_chat_template": lambda values, foreign: ["--format", "chat"],
    "system_instruction": lambda values, foreign: (
        ["-D", f"system={values[0]}"] if foreign else ["-T", f"prompt.system={values[0]}"]
    ),
    "include_path": lambda values, foreign: ["--task-root", values[0]],
    "trust_remote_code": lambda values, foreign: ["-M", "trust_remote_code=true"],
    "wandb_args": lambda values, foreign: ["--track", "wandb"],
    "trackio_args": lambda values, foreign: ["--track", "trackio"],
    "verbosity": lambda values, foreign: ["--verbose"],
}
"""What a flag becomes. foreign: whether the tasks are lm_eval's."""


def meant(
    option: str, command: Sequence[str], arguments: Sequence[str], native: Mapping[str, bool]
) -> str | None:
    """What to say of an option that a command lacks and lm_eval has, with the line to write; None for any other option.

    command: its words, such as ("run",). arguments: all that was typed after it. native: the command's own options, and whether each
    takes a value.
    """
    name = _name(option)
    if name not in KINDS or option in native:
        return None
    said = f"{option.partition('=')[0]} is an option of lm_eval."
    parts = list(_parts(arguments, native))
    typed = {_name(one): values for one, values in parts if one}
    named = [value for one, values in parts for value in values if not one]
    model = next(iter(typed.get("model", ())), "")
    if command == ("run",) and "/" not in model and all(_name(one) in KINDS for one in typed):
        before = ["--tasks", ",".join(named)] if named else []
        words = [word for one, values in parts if one for word in (one, *values)]
        return f"{said} Write: {join(['evalwright', 'lm-eval', 'run', *before, *words])}"
    tasks = [value for text in typed.get("tasks", ()) for value in names_of(text)]
    foreign = bool(tasks) or any(one.startswith("lm-eval:") for one in named)
    words = [one if ":" in one or one.endswith("yaml") else f"lm-eval:{one}" for one in tasks]
    left: list[str] = []
    lost: list[str] = []
    for one, values in parts:
        key = _name(one)
        if not one or one in native:
            words += [one, *values] if one else values
        elif key in _NOT_NEEDED:
            left.append(f"{one} ({_NOT_NEEDED[key]})")
        elif key in _OURS and {*(made := _OURS[key](values, foreign))[:1]} <= native.keys():
            words += made
        elif key != "tasks":
            lost.append(one)
    if lost:
        return f"{said} `evalwright {' '.join(command)}` has nothing like {', '.join(lost)}; `evalwright lm-eval --help` shows what takes it."
    more = f" Not needed: {', '.join(left)}." if left else ""
    return f"{said} Write: {join(['evalwright', *command, *words])}{more and '.'}{more}"


def _name(option: str) -> str:
    return option.partition("=")[0].removeprefix("--").replace("-", "_")


def _parts(arguments: Sequence[str], native: Mapping[str, bool]) -> Iterator[tuple[str, list[str]]]:
    """(option, its values), in their order; what stands alone has no option."""
    left = list(arguments)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            yield "", [word]
            continue
        option, equals, value = word.partition("=")
        if equals:
            yield option, [value]
            continue
        kind = KINDS.get(_name(option), "flag")
        several = kind == "mapping" and option not in native
        takes = native[option] if option in native else not kind.startswith("flag")
        values = [left.pop(0)] if takes and left else []
        while several and left and "=" in left[0] and not left[0].startswith("-"):
            values.append(left.pop(0))
        yield option, values
