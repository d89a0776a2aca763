"""Real servers of local models beside `hf/` on the same weights: what each can do, and how far its
answers drift.

    python -m benchmarks real_servers [--llama-server PATH --llama-source FOLDER]
        [--transformers-serve] [--llama-options '-ctk f32 -ctv f32 -fa off']
        [--serve-path FOLDER] [--types f32,q8_0] [--limit 40]

--llama-server: the binary, built from llama.cpp's sources in --llama-source (its converter needs
the package gguf). For instance: `cmake -B build -DGGML_NATIVE=ON && cmake --build build --target
llama-server`. --transformers-serve: start `transformers serve` of this interpreter, with
--serve-path before its packages (it needs fastapi, uvicorn and openai). The model is a small Llama
of random weights, so texts that differ show rounding, not worth. --types: of the GGUF's weights.

A llama.cpp tokenizer is recognised by the hash of published ones; that of the random model is
declared to cut texts as GPT-2 does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measuring import add_numbers, free_port, option_parser, served

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.tiny_models import make_tiny_model  # noqa: E402

CONVERT = """
import runpy, sys
root = sys.argv.pop(1)
sys.path[:0] = [root, root + "/gguf-py"]
import conversion.base
conversion.base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
runpy.run_path(root + "/convert_hf_to_gguf.py", run_name="__main__")
"""
START_SECONDS = 900
SERVE = "from transformers.cli.transformers import main; main()"


def compare(folder: Path, model: str, model_options: list[str], limit: int) -> None:
    """Show an answer and, unless limit is 0, the drift report."""
    evalwright = [sys.executable, "-m", "evalwright", "models", "check"]
    with tempfile.TemporaryDirectory() as where:
        arguments = [part for option in model_options for part in ("-M", option)]
        process = subprocess.run(
            [*evalwright, model, *arguments, "--ask", "Good morning", "--json"],
            cwd=where,
            capture_output=True,
            text=True,
        )
        report = (
            json.loads(process.stdout)
            if process.returncode == 0
            else {"abilities": [process.stderr.strip()]}
        )
        print(
            f"\n{model} {' '.join(model_options)}\n  can: {', '.join(report['abilities'])};"
            f" wrote: {report.get('answer')!r:.60}",
            flush=True,
        )
        if not limit:
            return
        against_options = [part for option in model_options for part in ("-A", option)]
        drift = [
            *evalwright,
            f"hf/{folder}",
            "--against",
            model,
            *against_options,
            "--limit",
            str(limit),
        ]
        subprocess.run([*drift, "-M", "dtype=float32", "-M", "device=cpu"], cwd=where)
        sys.stdout.flush()


def convert(
    folder: Path, weights: Path, kind: str, options: argparse.Namespace
) -> None:
    """Convert a model to llama.cpp's format, with weights of a kind."""
    command = [sys.executable, "-c", CONVERT, str(options.llama_source), str(folder)]
    subprocess.run(
        [*command, "--outfile", str(weights), "--outtype", kind],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": options.serve_path},
    )


def compare_llama_server(folder: Path, kind: str, options: argparse.Namespace) -> None:
    """Compare llama-server, with weights of a kind."""
    weights = folder.parent / f"{kind}.gguf"
    convert(folder, weights, kind, options)
    port = free_port()
    command = f"{options.llama_server} -m {weights} --port {port} -c 8192 -np 4 -t 1"
    with served(
        [*command.split(), *options.llama_options.split()],
        folder.parent,
        f"http://127.0.0.1:{port}/health",
        wait_seconds=START_SECONDS,
    ):
        print(f"\nllama-server, {kind}:")
        model = f"llamacpp/http://127.0.0.1:{port}/v1#model"
        compare(folder, model, ["interface=completions"], options.limit)
        compare(folder, model, [], 0)


def compare_transformers_serve(folder: Path, options: argparse.Namespace) -> None:
    """Compare `transformers serve`."""
    port = free_port()
    arguments = f"serve {folder} --port {port} --host 127.0.0.1 --device cpu"
    with served(
        [sys.executable, "-c", SERVE, *arguments.split()],
        folder.parent,
        f"http://127.0.0.1:{port}/health",
        {**os.environ, "PYTHONPATH": options.serve_path},
        START_SECONDS,
    ):
        print("\ntransformers serve:")
        model = f"transformers-serve/http://127.0.0.1:{port}/v1#{folder}"
        compare(folder, model, ["interface=completions"], options.limit)


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--llama-server", type=Path)
    parser.add_argument("--llama-source", type=Path)
    parser.add_argument("--transformers-serve", action="store_true")
    parser.add_argument("--serve-path", default="")
    parser.add_argument("--types", default="f32,q8_0")
    parser.add_argument("--llama-options", default="", help="of llama-server")
    add_numbers(parser, limit=40)
    options = parser.parse_args(words)
    if not options.llama_server and not options.transformers_serve:
        parser.error("name --llama-server with --llama-source, or --transformers-serve")
    with tempfile.TemporaryDirectory() as name:
        folder = make_tiny_model(
            Path(name) / "model", chat=True, context=2048, hidden=64
        )
        for kind in options.types.split(",") if options.llama_server else ():
            compare_llama_server(folder, kind, options)
        if options.transformers_serve:
            compare_transformers_serve(folder, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
