"""The flags of `lm_eval run` 0.4.13, and what they say, as one mapping with the names that its YAML `--config` uses."""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from evalwright.compat.lm_eval.harness import renamed
from evalwright.core.errors import ConfigurationError, check_known
from evalwright.tasks.yaml_files import read_document

SEEDS = (0, 1234, 1234, 1234)
"""Of random, numpy, torch and shots."""

DEFAULTS = {"model_args": {}, "batch_size": 1, "device": "cuda:0", "gen_kwargs": {}}
"""What its command writes of settings that were not given; in Python they are None."""

# Name, short form, how it is read, what it says.
FLAGS: tuple[tuple[str, str, str, str], ...] = (
    ("config", "-C", "text", "A YAML file with these settings; flags go before it."),
    ("tasks", "-t", "names", "Tasks, groups, patterns such as mmlu_*, YAML files, or a folder of them."),
    ("model", "-M", "text", "The model's class, such as hf (the default) or local-completions."),
    ("model_args", "-a", "mapping", "Its arguments, key=value."),
    ("apply_chat_template", "", "flag or text", "Prompts as messages; by the template of that name."),
    ("limit", "-L", "number", "Samples of each task, or a share of them below 1."),
    ("use_cache", "-c", "text", "Responses are always stored; the path is not used."),
    ("num_fewshot", "-f", "integer", "Number of shots."),
    ("batch_size", "-b", "text", "A number, auto or auto:N."),
    ("max_batch_size", "", "integer", "The most rows of a batch."),
    ("device", "", "text", "cuda, cuda:0, cpu, mps."),
    ("gen_kwargs", "", "mapping", "Settings of generation, over those of the tasks."),
    ("output_path", "-o", "text", "Folder, or JSON file, for the results in lm_eval's form."),
    ("log_samples", "-s", "flag", "Write the samples beside the results."),
    ("samples", "-E", "json", "Rows of each task: JSON, or a file of it."),
    ("cache_requests", "", "flag or text", "Not needed: prompts are made as they are sent."),
    ("check_integrity", "", "flag", "Check the tasks before the run."),
    ("system_instruction", "", "text", "A system message for every prompt."),
    (
        "fewshot_as_multiturn",
        "",
        "flag or text",
        "Shots as turns of their own; the default with a chat template.",
    ),
    ("include_path", "", "text", "A folder of more tasks."),
    ("verbosity", "-v", "text", "Level of the log."),
    ("write_out", "-w", "flag", "Print the first prompts of each task."),
    ("show_config", "", "flag", "Print the whole result as JSON."),
    ("wandb_args", "", "mapping", "Log to Weights & Biases: project, entity."),
    ("wandb_config_args", "", "mapping", "Not supported."),
    ("trackio_args", "", "mapping", "Log to trackio: project."),
    ("hf_hub_log_args", "", "mapping", "Not supported but for output_path: see export hf-results."),
    ("predict_only", "-x", "flag", "Write the answers without numbers."),
    ("seed", "", "seeds", "One, or four: of random, numpy, torch and shots."),
    ("trust_remote_code", "", "flag", "Let the model's repository run its code."),
    ("confirm_run_unsafe_code", "", "flag", "Accepted; models' programs run in a sandbox, or not at all."),
    ("metadata", "", "mapping", "Values for tasks that make their data, such as RULER's."),
)
# Ours, beside theirs.
OWN = (
    ("trust", "", "names", "Folders whose task files may run their Python."),
    ("scoring", "", "text", "published (the default): its arithmetic; or corrected."),
    ("home", "", "text", "Where responses are stored."),
)
NAMES = tuple(name for name, *_ in (*FLAGS, *OWN))
_BY_PERSON = (
    "trust", "trust_remote_code", "home", "wandb_args", "wandb_config_args", "trackio_args", "hf_hub_log_args",
)  # fmt: skip
_BY_PERSON_IN_ARGUMENTS = ("trust_remote_code", "base_url", "header", "headers", "auth_token", "api_key")
"""What only the person at the command line may set."""
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")
_CACHING = ("true", "refresh", "delete")
_KINDS = {name: kind for name, _, kind, _ in FLAGS}
_MAPPINGS = tuple(name for name, _, kind, _ in FLAGS if kind == "mapping")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Wrong usage is an error of ours, with its exit code."""
        raise ConfigurationError(
            f"{message[0].upper()}{message[1:]}. `evalwright lm-eval --help` shows all flags."
        )


def parser() -> argparse.ArgumentParser:
    """The parser of `lm_eval run`. What is not given is not in its result."""
    found = _Parser(
        prog="evalwright lm-eval", add_help=False, argument_default=argparse.SUPPRESS, allow_abbrev=True
    )
    for name, short, kind, text in (*FLAGS, *OWN):
        names = [f"--{name}", *filter(None, [short])]
        how: dict[str, Any] = {"dest": name, "help": text}
        if kind == "flag":
            how["action"] = "store_true"
        elif kind in ("names", "mapping"):
            how |= {"nargs": "+", "action": "extend"}
        elif kind == "flag or text":
            how |= {"nargs": "?", "const": True}
        elif kind in ("integer", "number"):
            how["type"] = int if kind == "integer" else float
        found.add_argument(*names, **how)
    return found


def read_arguments(arguments: Sequence[str]) -> dict[str, Any]:
    """What a command line says, the file of --config below it. Raises ConfigurationError."""
    if gone := renamed.renamed_flags(arguments):
        raise ConfigurationError(" ".join(gone))
    given = vars(parser().parse_args([_underscored(word) for word in arguments]))
    below = read_config(given["config"]) if "config" in given else {}
    return normalised({**below, **given})


def _underscored(word: str) -> str:
    """A flag as there: with underscores."""
    name, equals, value = word.partition("=")
    return f"--{name[2:].replace('-', '_')}{equals}{value}" if re.match(r"--\w", word) else word


def read_config(path: str) -> dict[str, Any]:
    """The settings of a YAML file. Raises ConfigurationError and UnknownName."""
    document = read_document(Path(path), "settings file")
    if not isinstance(document.value, Mapping):
        raise ConfigurationError(f"{path} must be a mapping of settings, such as `tasks: [arc_easy]`.")
    found = dict(document.value)
    arguments = found.get("model_args")
    inner = mapping_of("model_args", arguments) if arguments else {}
    for name in (*_BY_PERSON, *(f"model_args.{one}" for one in _BY_PERSON_IN_ARGUMENTS)):
        if name in found or (name.startswith("model_args.") and name.partition(".")[2] in inner):
            raise ConfigurationError(
                f"{path} sets {name}, which a file may not: it decides what code runs, or who gets a key or the results. "
                "Give it on the command line."
            )
    for name, place, said in (
        ("include_path", Path(path).resolve().parent, "that is not beside it"),
        ("output_path", Path.cwd(), "outside the folder that you are in"),
    ):
        if (named := found.get(name)) and not Path(str(named)).resolve().is_relative_to(place):
            raise ConfigurationError(
                f"{path} sets {name} to a folder {said}. Give it on the command line: --{name} {named}"
            )
    return found


def normalised(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with their values in one form: mappings, lists of names, four seeds, numbers. Raises ConfigurationError, UnknownName."""
    out: dict[str, Any] = {}
    for name, value in given.items():
        check_known("setting of lm_eval", [name], NAMES, "")
        if value is None or name == "config" or (value is False and name != "fewshot_as_multiturn"):
            continue
        if name in _MAPPINGS:
            value = mapping_of(name, value)
        elif name in ("tasks", "trust"):
            value = [part for one in ([value] if isinstance(value, str) else value) for part in names_of(one)]
        elif name == "seed":
            value = _seeds(value)
        elif name == "samples":
            value = _rows(value)
        elif name == "fewshot_as_multiturn":
            value = _truth(name, value)
        elif name in ("batch_size", "max_batch_size"):
            _check_size(name, value)
        elif (
            name != "include_path"
            and _KINDS.get(name) in ("text", "integer")
            and isinstance(value, Mapping | list)
        ):
            raise ConfigurationError(f"--{name} takes one value, not {shown(str(value))}.")
        elif name == "limit":
            value = _limit(value)
        elif name == "cache_requests" and isinstance(value, str) and value not in _CACHING:
            raise ConfigurationError(
                f"--cache_requests takes {', '.join(_CACHING)} or nothing, not {shown(value)}."
            )
        out[name] = value
    if place := out.get("hf_hub_log_args", {}).get("output_path"):
        out.setdefault("output_path", str(place))
    _check(out)
    return out


def _check(given: Mapping[str, Any]) -> None:
    """What lm_eval refuses too."""
    if gone := renamed.renamed_values(given):
        raise ConfigurationError(" ".join(gone))
    if given.get("fewshot_as_multiturn") and not given.get("apply_chat_template"):
        raise ConfigurationError("--fewshot_as_multiturn needs --apply_chat_template.")
    if given.get("samples") and given.get("limit") is not None:
        raise ConfigurationError("Give --samples or --limit, not both.")
    wants = [name for name in ("log_samples", "predict_only") if given.get(name)]
    if wants and not given.get("output_path"):
        raise ConfigurationError(f"--{wants[0]} needs --output_path: the folder for the files.")


def names_of(text: Any) -> list[Any]:
    """The names of a text with commas; what is no text stands alone."""
    return [part.strip() for part in text.split(",") if part.strip()] if isinstance(text, str) else [text]


def mapping_of(name: str, value: Any) -> dict[str, Any]:
    """`key=value` texts (with commas or one by one), a JSON object, or a mapping. Raises ConfigurationError."""
    if isinstance(value, Mapping):
        return dict(value)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(one, str) for one in texts):
        raise ConfigurationError(f"--{name} takes key=value, or a mapping, not {shown(str(value))}.")
    if len(texts) == 1 and texts[0].lstrip().startswith("{"):
        try:
            found = json.loads(texts[0])
        except ValueError as error:
            raise ConfigurationError(f"--{name}: {shown(texts[0])} is not valid JSON: {error}.") from error
        return dict(found)
    out: dict[str, Any] = {}
    for part in (part for text in texts for part in _top_level(text)):
        key, equals, found = part.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"--{name} takes key=value, not {shown(part)}.")
        out[key.strip()] = _value(found)
    return out


def shown(text: str) -> str:
    """A text of the command line in a message."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def _top_level(text: str) -> list[str]:
    """The parts between commas that are in no bracket and no quotes."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[({":
            depth += 1
        elif char in "])}":
            depth = max(depth - 1, 0)
        elif char == "," and not depth:
            parts.append("")
            continue
        parts[-1] += char
    return [part for part in parts if part]


def _value(text: str) -> Any:
    """A value as lm_eval reads it: true, false, numbers, Python's literals, else the text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.isnumeric() and text.isascii():
        return int(text)
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _check_size(name: str, value: Any) -> None:
    auto = str(value) if name == "batch_size" else ""
    text = "1" if auto == "auto" else auto.removeprefix("auto:") if auto.startswith("auto:") else str(value)
    if not text.isdecimal() or int(text) < 1:
        also = ", auto or auto:N" if name == "batch_size" else ""
        raise ConfigurationError(
            f"--{name} takes a whole number of at least 1{also}, not {shown(str(value))}."
        )


def _truth(name: str, value: Any) -> bool:
    if str(value).lower() not in (*_TRUE, *_FALSE):
        raise ConfigurationError(f"--{name} takes true or false, not {shown(str(value))}.")
    return str(value).lower() in _TRUE


def _limit(value: Any) -> float:
    try:
        found = value if isinstance(value, int) else float(value)
        int(found)
        return found
    except (TypeError, ValueError, OverflowError):
        raise ConfigurationError(f"--limit takes a number, not {value!r}.") from None


def _seeds(value: Any) -> tuple[int | None, ...]:
    parts = (
        value.split(",")
        if isinstance(value, str)
        else list(value)
        if isinstance(value, list | tuple)
        else [value]
    )
    try:
        found = [None if str(part).strip().lower() == "none" else int(part) for part in parts]
    except (TypeError, ValueError):
        found = []
    if len(found) == 1:
        found *= len(SEEDS)
    elif len(found) == len(SEEDS) - 1:
        found.append(SEEDS[-1])
    if len(found) != len(SEEDS):
        raise ConfigurationError(
            f"--seed takes one whole number, or four with commas (None for no seed), not {value!r}."
        )
    return tuple(found)


def _rows(value: Any) -> dict[str, list[int]]:
    """Rows by task. Raises ConfigurationError."""
    if isinstance(value, str):
        text = value
        try:
            if not text.lstrip().startswith(("{", "[")):
                text = Path(text).read_text(encoding="utf-8")
            value = json.loads(text)
        except OSError as error:
            said = f"The file of --samples, {shown(text)}, cannot be read: {error.strerror}."
            raise ConfigurationError(said) from error
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"--samples {shown(text)} is not valid JSON: {error}.") from error
    good = isinstance(value, Mapping) and all(
        isinstance(rows, list) and rows and all(type(row) is int and row >= 0 for row in rows)
        for rows in value.values()
    )
    if not good or not value:
        raise ConfigurationError(
            "--samples takes rows by task, at least one each, such as '{\"arc_easy\": [0, 1, 2]}'."
        )
    return {str(task): list(rows) for task, rows in value.items()}
