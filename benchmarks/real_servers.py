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

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from measuring import option_parser

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
SERVE = "from transformers.cli.transformers import main; main()"


def free_port() -> int:
    """Find a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def run_server(
    command: list[str], port: int, log: Path, path: str = ""
) -> Iterator[str]:
    """Run a server; yields its address with /v1 once its health check passes."""
    settings = {**os.environ, "PYTHONPATH": path}
    with (
        log.open("wb") as log_file,
        subprocess.Popen(
            command, stdout=log_file, stderr=log_file, env=settings
        ) as process,
    ):
        try:
            until = time.monotonic() + 900
            while process.poll() is None and time.monotonic() < until:
                try:
                    with urllib.request.urlopen(
                        f"http://127.0.0.1:{port}/health", timeout=5
                    ) as reply:
                        if reply.status == 200:
                            break
                except OSError:
                    time.sleep(0.5)
            else:
                raise SystemExit(
                    f"{command[0]} did not"
                    f" start:\n{log.read_text(errors='replace')[-2000:]}"
                )
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


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


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    options = option_parser(__doc__)
    options.add_argument("--llama-server", type=Path)
    options.add_argument("--llama-source", type=Path)
    options.add_argument("--transformers-serve", action="store_true")
    options.add_argument("--serve-path", default="")
    options.add_argument("--types", default="f32,q8_0")
    options.add_argument(
        "--llama-options", default="", help="further options of llama-server"
    )
    options.add_argument("--limit", type=int, default=40)
    arguments = options.parse_args(words)
    if not arguments.llama_server and not arguments.transformers_serve:
        options.error(
            "name --llama-server with --llama-source, or --transformers-serve"
        )
    with tempfile.TemporaryDirectory() as where:
        base = Path(where)
        folder = make_tiny_model(base / "model", chat=True, context=2048, hidden=64)
        for kind in arguments.types.split(",") if arguments.llama_server else ():
            weights = base / f"{kind}.gguf"
            convert = [
                sys.executable,
                "-c",
                CONVERT,
                str(arguments.llama_source),
                str(folder),
            ]
            subprocess.run(
                [*convert, "--outfile", str(weights), "--outtype", kind],
                check=True,
                capture_output=True,
                env={**os.environ, "PYTHONPATH": arguments.serve_path},
            )
            port = free_port()
            command = [
                str(arguments.llama_server),
                "-m",
                str(weights),
                "--port",
                str(port),
                "-c",
                "8192",
                "-np",
                "4",
                "-t",
                "1",
            ]
            with run_server(
                [*command, *arguments.llama_options.split()], port, base / "llama.log"
            ) as url:
                print(f"\nllama-server, {kind}:")
                compare(
                    folder,
                    f"llamacpp/{url}#model",
                    ["interface=completions"],
                    arguments.limit,
                )
                compare(folder, f"llamacpp/{url}#model", [], 0)
        if arguments.transformers_serve:
            port = free_port()
            command = [
                sys.executable,
                "-c",
                SERVE,
                "serve",
                str(folder),
                "--port",
                str(port),
                "--host",
                "127.0.0.1",
                "--device",
                "cpu",
            ]
            with run_server(
                command, port, base / "serve.log", arguments.serve_path
            ) as url:
                print("\ntransformers serve:")
                compare(
                    folder,
                    f"transformers-serve/{url}#{folder}",
                    ["interface=completions"],
                    arguments.limit,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
