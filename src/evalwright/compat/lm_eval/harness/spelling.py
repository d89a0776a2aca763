"""A native command that was given lm_eval's flags: the line that was meant, with its own flags or
as `evalwright lm-eval`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import join

from evalwright.compat.lm_eval.harness.flags import KINDS, names_of
from evalwright.compat.lm_eval.tables import TABLES

_NOT_NEEDED: dict[str, str] = TABLES["not_needed"]
_GENERATION = {"max_gen_toks": "max_tokens", "until": "stop"}
"""Settings of generation that are called otherwise in our tasks."""


def _ours(key: str, values: Sequence[str], foreign: bool) -> list[str] | None:
    """What a flag becomes; None where our commands have nothing like it. foreign: whether the tasks
    are lm_eval's.
    """
    parts = [one for value in values for one in value.split(",")]
    if key == "model_args":
        return [
            word
            for one in parts
            if not one.startswith("pretrained=")
            for word in ("-M", one)
        ]
    if key == "gen_kwargs":
        named = [one.partition("=")[::2] for one in parts]
        if foreign:
            return [
                word
                for name, value in named
                for word in ("-D", f"generation.{name}={value}")
            ]
        kept = [
            (_GENERATION.get(name, name), value)
            for name, value in named
            if name != "do_sample"
        ]
        return [
            word
            for name, value in kept
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


def meant(
    option: str,
    command: Sequence[str],
    arguments: Sequence[str],
    native: Mapping[str, bool],
) -> str | None:
    """What to say of an option that a command lacks and lm_eval has, with the line to write; None
    for any other option.

    command: its words, such as ("run",). arguments: all that was typed after it. native: the
    command's own options, and whether each takes a value.
    """
    name = _name(option)
    if name not in KINDS or option in native:
        return None
    said = f"{option.partition('=')[0]} is an option of lm_eval."
    parts = list(_parts(arguments, native))
    typed = {_name(one): values for one, values in parts if one}
    named = [value for one, values in parts for value in values if not one]
    model = next(iter(typed.get("model", ())), "")
    if (
        command == ("run",)
        and "/" not in model
        and all(_name(one) in KINDS for one in typed)
    ):
        before = ["--tasks", ",".join(named)] if named else []
        words = [word for one, values in parts if one for word in (one, *values)]
        return (
            f"{said} Write: {join(['evalwright', 'lm-eval', 'run', *before, *words])}"
        )
    tasks = [value for text in typed.get("tasks", ()) for value in names_of(text)]
    foreign = bool(tasks) or any(one.startswith("lm-eval:") for one in named)
    words = [
        one if ":" in one or one.endswith("yaml") else f"lm-eval:{one}" for one in tasks
    ]
    left: list[str] = []
    lost: list[str] = []
    for one, values in parts:
        key = _name(one)
        if not one or one in native:
            words += [one, *values] if one else values
        elif key in _NOT_NEEDED:
            left.append(f"{one} ({_NOT_NEEDED[key]})")
        elif (made := _ours(key, values, foreign)) is not None and {
            *made[:1]
        } <= native.keys():
            words += made
        elif key != "tasks":
            lost.append(one)
    if lost:
        return (
            f"{said} `evalwright {' '.join(command)}` has nothing like"
            f" {', '.join(lost)}; `evalwright lm-eval --help` shows what takes it."
        )
    more = f" Not needed: {', '.join(left)}." if left else ""
    return f"{said} Write: {join(['evalwright', *command, *words])}{more and '.'}{more}"


def _name(option: str) -> str:
    return option.partition("=")[0].removeprefix("--").replace("-", "_")


def _parts(
    arguments: Sequence[str], native: Mapping[str, bool]
) -> Iterator[tuple[str, list[str]]]:
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
