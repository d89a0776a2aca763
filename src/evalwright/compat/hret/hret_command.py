"""`evalwright hret`: HRET's command line with its flags, strict about JSON and honest in its exit
code.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from evalwright.compat.programs import import_later, option, scoring_option
from evalwright.extend import Importer, check_writable, write_file

IMPORTER = Importer(
    about=(
        "Import saved results of HRET: `save_json` files, `--output_file` files and"
        " hret_results_*.json."
    ),
    make=import_later("hret.importing:imports"),
    run_name="the file's name",
)

_PARAMS = tuple(
    f"{part_name}_params"
    for part_name in ("dataset", "model", "judge", "reward", "scaling", "evaluator")
)
_NOT_OF_CALL = ("config", "output_file", "scoring", "trust", "log_level")
"""What says how a call is made, and not what is evaluated."""
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class _Json(click.ParamType[dict[str, Any]]):
    name = "json"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        """A JSON object; anything else is wrong usage."""
        if isinstance(value, Mapping):
            return dict(value)
        try:
            settings = json.loads(value)
        except ValueError as error:
            self.fail(f"{value!r} is not valid JSON: {error}.", param, ctx)
        if not isinstance(settings, dict):
            self.fail(
                f"{value!r} must be a JSON object, for example '{{\"seed\": 1}}'.",
                param,
                ctx,
            )
        return settings


def _flag(name: str, text: str, **settings: Any) -> click.Option:
    dashed = name.replace("_", "-")
    return option(
        f"--{name}",
        *([f"--{dashed}"] if dashed != name else []),
        name,
        help=text,
        **settings,
    )


_OPTIONS: list[click.Parameter] = [
    _flag("dataset", "The dataset's name in the registry, such as haerae_bench."),
    _flag("model", "The model's name in the registry, such as huggingface or openai."),
    _flag(
        "config",
        "A YAML or JSON file with all of these in place of them.",
        type=click.Path(dir_okay=False),
    ),
    _flag("subset", "A subset, or several with commas."),
    _flag("split", "The split to evaluate.", default="test", show_default=True),
    _flag(
        "evaluation_method",
        "How answers are scored.",
        default="string_match",
        show_default=True,
    ),
    _flag("judge_model", "The judge's name in the registry."),
    _flag("reward_model", "The reward model's name in the registry."),
    _flag("scaling_method", "How several replies become one."),
    _flag(
        "output_file",
        "Where the result goes, as JSON. Without it: standard output.",
        type=click.Path(dir_okay=False, writable=True),
    ),
    _flag(
        "cot_parser",
        "A function that splits a reply into reasoning and answer, as"
        " package.module.function.",
    ),
    *(
        _flag(
            name,
            f"Parameters ({name.partition('_')[0]}), as a JSON object.",
            type=_Json(),
            default="{}",
        )
        for name in _PARAMS
    ),
    option(
        "--language_penalize/--no-language_penalize",
        "--language-penalize/--no-language-penalize",
        "language_penalize",
        default=True,
        help="Measure the language of the replies.",
    ),
    _flag(
        "target_lang",
        "The language that replies should have.",
        default="ko",
        show_default=True,
    ),
    _flag(
        "num_few_shot",
        "The number of examples in front of every question.",
        type=click.IntRange(0),
        default=0,
        show_default=True,
    ),
    _flag(
        "few_shot_split",
        "The split of the examples. Without it: another one than --split, where there"
        " is one.",
    ),
    _flag("few_shot_instruction", "The text before the examples."),
    _flag(
        "few_shot_example_template",
        "The template of an example, with {input} and {reference}.",
    ),
    scoring_option("HRET's own arithmetic, or the corrected one (default)."),
    _flag(
        "trust",
        "Let --config run code, name addresses, and read files anywhere.",
        is_flag=True,
    ),
    _flag("log_level", "What is logged.", type=click.Choice(_LEVELS), default="INFO"),
]


def _work(**options: Any) -> int:
    from evalwright.compat.hret.evaluator import Evaluator, run_from_config
    from evalwright.compat.hret.utils.util import as_json

    logging.basicConfig(level=options["log_level"], stream=sys.stderr)
    logging.getLogger("evalwright").setLevel(options["log_level"])
    call = {
        name: option for name, option in options.items() if name not in _NOT_OF_CALL
    }
    if options["output_file"]:
        check_writable(Path(options["output_file"]))
    if options["config"]:
        context = click.get_current_context()
        command_line = click.core.ParameterSource.COMMANDLINE
        if more := [
            name for name in call if context.get_parameter_source(name) is command_line
        ]:
            raise click.UsageError(
                f"--config holds the whole evaluation: leave out --{more[0]}, or write"
                " it into the file."
            )
        result = run_from_config(
            options["config"], scoring=options["scoring"], trust=options["trust"]
        )
    else:
        if options["trust"]:
            raise click.UsageError("--trust is for what --config sets: leave it out.")
        for name in ("dataset", "model"):
            if not options[name]:
                raise click.UsageError(f"Missing option '--{name}' (or '--config').")
        if "," in (call["subset"] or ""):
            call["subset"] = [subset.strip() for subset in call["subset"].split(",")]
        call["custom_cot_parser"] = call.pop("cot_parser")
        result = Evaluator(scoring=options["scoring"]).run(**call)
    text = as_json(result.to_dict())
    if options["output_file"]:
        write_file(Path(options["output_file"]), text)
    else:
        click.echo(text)
    return (
        1 if "pipeline_error" in result.metrics or result.info.get("n_missing") else 0
    )


hret = click.Command(
    "hret",
    context_settings={"help_option_names": ["-h", "--help"]},
    callback=_work,
    help=(
        "Evaluate as `python -m llm_eval.evaluator` of HRET does, with its flags. Exit"
        " code 0: done; 1: samples or all of it failed."
    ),
    params=_OPTIONS,
)


def run(arguments: list[str] | None = None) -> int:
    """The command; SystemExit with 2 for wrong usage."""
    try:
        code = hret.main(
            args=arguments, prog_name="evalwright hret", standalone_mode=False
        )
    except click.ClickException as error:
        error.show(file=sys.stderr)
        raise SystemExit(2) from None
    except click.exceptions.Exit as ended:
        raise SystemExit(ended.exit_code) from None
    return code if isinstance(code, int) else 0
