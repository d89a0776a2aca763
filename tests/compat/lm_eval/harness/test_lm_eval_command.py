"""`evalwright lm-eval`: every flag of `lm_eval run` is taken or refused with the reason, and the
results are those of lm_eval.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

from evalwright.compat.lm_eval import simple_evaluate
from evalwright.compat.lm_eval.evaluator import build_evaluation
from evalwright.compat.lm_eval.harness import flags
from evalwright.compat.lm_eval.harness.backends import CLASSES, build_backend
from evalwright.compat.lm_eval.tasks.options import installed_tasks
from evalwright.core.errors import ConfigurationError, TaskError, UnknownName
from evalwright.models.registry import open_model
from support.command import Done
from support.typed import typed

PAGE = Path(__file__).parents[4] / "docs" / "lm-eval-command.md"
FLAGS_PAGE = PAGE.parent / "reference" / "lm-eval-flags.md"
SKY = """
task: sky
dataset_path: json
dataset_kwargs: {data_files: {train: rows/train.jsonl, test: rows/test.jsonl}}
output_type: multiple_choice
training_split: train
test_split: test
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_choice: "{{choices}}"
doc_to_target: answer
metric_list: [{metric: acc}, {metric: acc_norm}]
metadata: {version: 1.0}
"""
GEN = """
include: sky.yaml
task: gen
output_type: generate_until
doc_to_choice: null
doc_to_target: "{{choices[answer]}}"
generation_kwargs: {until: ["\\n"], do_sample: false, max_gen_toks: 4}
metric_list: [{metric: exact_match}]
"""
HEAVENS = "group: heavens\ntask: [sky, gen]\naggregate_metric_list: [{metric: acc, weight_by_size: true}]\n"


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path
    monkeypatch.chdir(folder)
    (folder / "tasks" / "rows").mkdir(parents=True)
    for name, text in (("sky", SKY), ("gen", GEN), ("heavens", HEAVENS)):
        (folder / "tasks" / f"{name}.yaml").write_text(text)
    for split, n in (("train", 8), ("test", 20)):
        rows = [
            {"question": f"{split} {i}?", "choices": ["Mars", "Vega"], "answer": i % 2}
            for i in range(n)
        ]
        (folder / "tasks" / "rows" / f"{split}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows)
        )
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from support.tiny_models import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("tiny"), chat=True)


def harness(line: str) -> Done:
    """A command line with the model and the folder of tasks in front."""
    return typed(
        "lm-eval", "--model", "scripted", "--include_path", "tasks", *line.split()
    )


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without weights under a name of lm_eval's."""
    from evalwright.compat.lm_eval import evaluator
    from evalwright.compat.lm_eval.harness import backends
    from evalwright.evaluation.configuration import ModelSpec

    def found(model: str, arguments: Mapping[str, Any]) -> backends.Backend:
        return (
            backends.Backend(ModelSpec("scripted/hash"))
            if model == "scripted"
            else build_backend(model, arguments)
        )

    monkeypatch.setattr(evaluator, "build_backend", found)


def test_groups_shots_limits_and_files(tasks: Path) -> None:
    done = harness(
        "--tasks heav* --num_fewshot 2 --limit 0.5 --output_path out --log_samples"
    )
    assert done.code == 0, done.err
    assert re.search(r"\|heavens *\|N/A +\|none +\| +2\|acc ", done.out)
    assert re.search(
        r"\| - sky +\|1.0 +\|none +\| +2\|acc +\|↑\|0\.\d{4}\|±\|0\.\d{4}\|", done.out
    )
    (results,) = (tasks / "out").rglob("results_*.json")
    found = json.loads(results.read_text())
    assert found["n-samples"]["sky"]["effective"] == 10
    assert found["config"]["limit"] == 0.5
    assert found["config"]["fewshot_seed"] == 1234
    assert len(list((tasks / "out").rglob("samples_*.jsonl"))) == 2
    command = re.search(r"As our own command: evalwright (.*)", done.err)
    assert command
    again = typed(*shlex.split(command[1]))
    assert again.code == 0
    assert "0 sent" in again.err, "what it is said to be asks the same"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--tasks skyy", "Did you mean 'sky'?"),
        ("--limit 3", "No tasks"),
        ("--tasks sky --nosuch 1", "--nosuch"),
        ("--tasks sky --fewshot_as_multiturn", "needs --apply_chat_template"),
        ("--tasks sky --log_samples", "needs --output_path"),
        ("--tasks sky --samples {\"sky\":[1]} --limit 2", "not both"),
        ("--tasks sky --samples {\"sky\":[99]}", "has 20 rows"),
        ("--tasks sky --samples {\"skye\":[1]}", "Unknown task 'skye' in samples. Did you mean 'sky'?"),
        ("--tasks sky --trust nosuch", "The folder 'nosuch', which --trust names, does not exist."),
        ("--tasks sky --seed 1,2", "--seed"),
        ("--tasks sky --verbosity LOUD", "--verbosity"),
        ("--tasks sky --wandb_config_args a=b", "not supported"),
        ("--tasks sky --wandb_args project=p,mode=shared", "online, offline, disabled, not 'shared'"),
        ("--tasks sky --trackio_args project=p,mode=offline", "not 'mode'"),
        ("--tasks sky --hf_hub_log_args push_results_to_hub=True", "export hf-results"),
        ("--tasks sky --gen_kwargs nonsense", "key=value"),
        ("--tasks gen --gen_kwargs temprature=1", "Did you mean 'temperature'?"),
        ("--tasks gen --gen_kwargs repetition_penalti=1", "'repetition_penalty'"),
        ("--tasks gen --gen_kwargs custom_generate=stranger/code", "Unknown setting 'custom_generate' of generation"),
        ("--tasks gen --gen_kwargs temperature=hot", "temperature must be a number"),
        ("--tasks gen --gen_kwargs max_gen_toks=0", "max_gen_toks must be a whole number"),
        ("--tasks gen --gen_kwargs until=3", "until must be a text"),
        ("--tasks sky --samples {\"sky\":[]}", "at least one each"),
        ("--tasks sky --samples nofile", "'nofile', cannot be read: No such file"),
        ("--tasks sky --batch_size some", "--batch_size takes a whole number of at least 1, auto or auto:N"),
        ("--tasks sky --apply_chat_template --fewshot_as_multiturn maybe", "takes true or false"),
        ("--tasks sky --output_path tasks/sky.yaml", "'sky.yaml' is not a folder"),
        ("--tasks sky --scoring best", "Known: corrected, published"),
        ("--config nofile.yaml", "The settings file 'nofile.yaml' cannot be read"),
        ("--tasks sky --num_fewshot many", "num_fewshot"),
        ("--tasks sky --cache_requests maybe", "true, refresh, delete"),
        ("--tasks sky --no_cache --provide_description", "in its place write `description:` in the task's file"),
        ("--tasks hendrycksTest-*", "write --tasks mmlu"),
        ("--tasks hendrycksTest-anatomy", "write --tasks mmlu_anatomy"),
        ("--tasks truthfulqa_mc", "write --tasks truthfulqa_mc1,truthfulqa_mc2"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_says_why(tasks: Path, line: str, said: str) -> None:
    done = harness(line)
    assert done.code == 2
    assert said in done.err
    assert "bug" not in done.err


def test_rows_predictions_and_prompts(tasks: Path) -> None:
    assert (
        harness(
            '--tasks sky --samples {"sky":[3,1]} --output_path a --log_samples'
        ).code
        == 0
    )
    (samples,) = (tasks / "a").rglob("samples_sky_*.jsonl")
    assert sorted(
        json.loads(line)["doc_id"] for line in samples.read_text().splitlines()
    ) == [1, 3]
    done = harness("--tasks gen --limit 2 --predict_only --output_path b")
    assert (done.code, done.out) == (0, "")
    (samples,) = (tasks / "b").rglob("samples_gen_*.jsonl")
    row = json.loads(samples.read_text().splitlines()[0])
    assert row["resps"][0][0]
    assert "exact_match" not in row
    shown = harness("--tasks sky --limit 2 --write_out --show_config").out
    assert "Question: test 0?" in shown
    assert '"n-samples"' in shown


def test_a_file_of_settings_and_what_it_may_not_set(tasks: Path) -> None:
    (tasks / "mine.yaml").write_text(
        "model: scripted\ntasks: [sky]\ninclude_path: tasks\nlimit: 4\nseed: 42\n"
    )
    assert typed("lm-eval", "run", "--config", "mine.yaml", "--limit", "2").code == 0
    never = "which a file may not"
    for bad, said in (
        ("trust: [tasks]", never),
        ("trust_remote_code: true", never),
        ("model_args: {base_url: 'http://a'}", never),
        ("wandb_args: {project: x}", never),
        ("include_path: ..", "not beside it"),
        ("output_path: /", "outside"),
        ("limit: [1]", "--limit takes a number"),
        ("tasks: [sky, [gen]]\nmodel: scripted", "by name or by file"),
        ("model: [dummy]", "--model takes one value"),
        ("model_args: [1]", "--model_args takes key=value, or a mapping"),
        ("gen_kwargs: 5", "--gen_kwargs takes key=value, or a mapping"),
    ):
        (tasks / "bad.yaml").write_text(
            bad if bad.startswith("tasks") else f"tasks: [sky]\n{bad}\n"
        )
        done = typed("lm-eval", "run", "--config", "bad.yaml")
        assert done.code == 2
        assert said in done.err


def test_values_are_read_as_there() -> None:
    read = flags.parse_mapping(
        "gen_kwargs",
        ["temperature=0.8,top_k=5", "until=['a,b','c']", "x=True", "y=None", "z=-1"],
    )
    assert read == {
        "temperature": 0.8,
        "top_k": 5,
        "until": ["a,b", "c"],
        "x": True,
        "y": None,
        "z": -1.0,
    }
    assert flags.parse_mapping("model_args", ['{"pretrained": "a,b"}']) == {
        "pretrained": "a,b"
    }
    assert flags.read_arguments(["--tasks", "a,b", "c", "--seed", "1,None,3"]) == {
        "tasks": ["a", "b", "c"],
        "seed": (1, None, 3, 1234),
    }


def test_shots_in_one_turn_and_a_task_that_a_pattern_has_too(tasks: Path) -> None:
    given = flags.normalise_settings(
        {
            "tasks": "sky,s*",
            "include_path": "tasks",
            "fewshot_as_multiturn": False,
            "model": "scripted",
        }
    )
    found = build_evaluation(given).configuration
    assert "multiturn" not in found.dialect, "without messages it says nothing"
    chat = build_evaluation({**given, "apply_chat_template": True}).configuration
    assert chat.dialect["multiturn"] is False
    assert found.tasks == ("lm-eval:s*",)
    none = build_evaluation(
        {**given, "seed": (0, 0, 0, 0), "bootstrap_iters": 0}
    ).configuration.dialect
    assert (none["seed"], none["bootstrap"]) == (0, 0), "0 is a value"
    (tasks / "sky").mkdir()
    assert build_evaluation({**given, "tasks": ["sky"]}).configuration.tasks == (
        "lm-eval:sky",
    )
    assert build_evaluation({**given, "tasks": ["tasks"]}).configuration.tasks == (
        "lm-eval:tasks/*.yaml",
    )


def test_arguments_of_models_become_ours() -> None:
    found = build_backend(
        "hf",
        {"pretrained": "org/m", "dtype": "bfloat16", "parallelize": True, "batch_size": "auto:4", "max_batch_size": 8, "load_in_4bit": True},
    ).spec  # fmt: skip
    assert found.model == "hf/org/m"
    assert found.arguments == {
        "dtype": "bfloat16", "device_map": "auto", "batch_size": 8, "quantization": "bitsandbytes-4bit",
    }  # fmt: skip
    plain = build_backend(
        "hf", {"pretrained": "org/m", "add_bos_token": False, "dtype": "float32"}
    ).spec
    assert plain.arguments == {"dtype": "float32", "add_special_tokens": False}
    given = {"tasks": ["sky"], "model": "hf", "model_args": {"pretrained": "org/m"}}
    for scoring, rules in (("published", "published"), ("corrected", None)):
        (spec,) = build_evaluation({**given, "scoring": scoring}).configuration.models
        assert spec.arguments.get("token_rules") == rules
    client = {
        "model": "m", "base_url": "http://h:1/v1/completions", "num_concurrent": 4, "tokenizer": "t", "batch_size": 8,
    }  # fmt: skip
    served = build_backend("local-completions", client)
    assert served.spec.model == "lm/local-completions/m"
    assert served.spec.arguments == {
        "base_url": "http://h:1/v1/completions", "num_concurrent": 4, "tokenizer": "t",
    }  # fmt: skip
    assert any("batch_size" in note for note in served.notes)
    with pytest.raises(UnknownName, match="Did you mean 'hf'"):
        build_backend("hff", {})
    with pytest.raises(ConfigurationError, match="pretrained"):
        build_backend("hf", {})
    for name in set(CLASSES) - {"hf", "hf-auto", "huggingface", "vllm"}:
        try:
            build_backend(name, {"model": "m", "base_url": "http://h/v1", "strange": 1})
        except ConfigurationError as error:
            assert "pip install 'lm_eval==0.4.13'" in str(error)


def test_vllm_runs_in_this_process_and_gguf_on_its_server() -> None:
    vllm = build_backend(
        "vllm",
        {
            "pretrained": "org/m", "dtype": "auto", "tensor_parallel_size": 2, "data_parallel_size": 3, "max_model_len": 4096,
            "gpu_memory_utilization": 0.8, "add_bos_token": True, "batch_size": "auto", "revision": "main",
        },
    )  # fmt: skip
    assert vllm.spec.model == "vllm-local/org/m"
    assert vllm.spec.arguments == {
        "dtype": "auto", "tensor_parallel_size": 2, "replicas": 3, "max_length": 4096, "add_bos": True,
        "engine": {"gpu_memory_utilization": 0.8},
    }  # fmt: skip
    assert any("batch_size" in note for note in vllm.notes)
    for address in ("http://h:8080", "http://h:8080/v1/"):
        gguf = build_backend("gguf", {"base_url": address, "max_length": 512}).spec
        assert gguf.model == "llamacpp/gguf"
        assert gguf.arguments == {
            "base_url": "http://h:8080/v1", "interface": "completions", "context_length": 512,
        }  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"gguf_file=FILE\.gguf"):
        build_backend("gguf", {})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("pretrained=./nothere,softmax_dtype=float32", "the folder does not exist"),
        ("pretrained=./tasks,softmax_dtype=float32", "it has no file config.json"),
        ("pretrained=./tasks,gguf_file=a.gguf", "it has no file a.gguf"),
        ("pretrained=./nothere", "There is no model folder 'nothere'"),
    ],
)
def test_a_missing_file_is_an_error_before_anything_is_asked(
    tasks: Path, arguments: str, said: str
) -> None:
    done = typed(
        "lm-eval",
        "--model",
        "hf",
        "--model_args",
        arguments,
        "--include_path",
        "tasks",
        "--tasks",
        "gen",
    )
    assert done.code == 2
    assert said in done.err
    assert not (tasks / "runs").exists()


def test_a_server_without_tokenize_scores_by_echo() -> None:
    """llama-cpp-python's server, which the released package's gguf was written for."""
    from evalwright.core.requests import LogLikelihood
    from evalwright.core.responses import Response
    from evalwright.models.model_interface import RemoteModel
    from support.openai_server import serving

    with serving() as server:
        model = open_model(
            "llamacpp/gguf", {"base_url": server.url, "interface": "completions"}
        )
        assert isinstance(model, RemoteModel)

        async def both() -> tuple[Response, Response]:
            try:
                first = await model.answer(LogLikelihood("one", " two"))
                return first, await model.answer(LogLikelihood("one", " three"))
            finally:
                await model.close()

        first, second = asyncio.run(both())
    assert first.log_likelihood is not None
    assert first.log_likelihood < 0
    assert first.log_likelihood != second.log_likelihood


def test_multiple_choice_for_a_chat_interface_offers_the_generative_form(
    tasks: Path,
) -> None:
    line = (
        "lm-eval",
        "--model",
        "local-chat-completions",
        "--model_args",
        "model=m,base_url=http://127.0.0.1:1/v1/chat/completions",
    )
    folder = ("--include_path", "tasks", "--apply_chat_template", "--tasks", "sky")
    alone = typed(*line, *folder)
    assert alone.code == 2
    assert (
        "No form of it in which the model writes its answer is among the tasks."
        in alone.err
    )
    (tasks / "tasks" / "sky_generative.yaml").write_text(
        GEN.replace("task: gen", "task: sky_generative")
    )
    (tasks / "tasks" / "sky_cot.yaml").write_text("include: sky.yaml\ntask: sky_cot\n")
    offered = typed(*line, *folder)
    assert offered.code == 2
    assert (
        "in which the model writes its answer: lm-eval:sky_generative." in offered.err
    )


@pytest.mark.skipif(
    "LM_EVAL_TASKS" not in os.environ,
    reason="the task files of the released package are not here",
)
@pytest.mark.parametrize(
    ("task", "form"),
    [
        ("mmlu", "mmlu_generative"),
        ("mmlu_anatomy", "mmlu_anatomy_generative"),
        ("arc_challenge", "arc_challenge_chat"),
        ("truthfulqa_mc1", "truthfulqa_gen"),
        ("gpqa_main_n_shot", "gpqa_main_generative_n_shot"),
    ],
)
def test_generative_forms_of_shipped_tasks(task: str, form: str) -> None:
    from evalwright.compat.lm_eval.tasks.generative import generative_forms
    from evalwright.compat.lm_eval.tasks.index import Index

    assert form in generative_forms(task, Index([Path(os.environ["LM_EVAL_TASKS"])]))


def test_arguments_of_several_devices() -> None:
    def of(**arguments: Any) -> tuple[dict[str, Any], str]:
        found = build_backend("hf", {"pretrained": "org/m", **arguments})
        assert found.spec.model == "hf/org/m"
        return dict(found.spec.arguments), " ".join(found.notes)

    assert of(parallelize=False) == ({}, "")
    spread, said = of(
        parallelize=True,
        device_map_option="balanced",
        device="cuda:0",
        max_cpu_memory="30GiB",
        offload_folder="off",
    )
    assert spread == {
        "device_map": "balanced",
        "max_memory": {"cpu": "30GiB"},
        "offload_folder": "off",
    }
    assert "device has no effect" in said
    gpus, said = of(device_map="auto", max_memory_per_gpu="10GiB")
    assert gpus["device_map"] == "auto"
    assert ("max_memory" in gpus) != ("there is no GPU" in said)
    assert of(max_cpu_memory="30GiB", offload_folder="off") == (
        {},
        "max_cpu_memory has no effect without parallelize=True: the model is on one device. "
        "offload_folder has no effect without parallelize=True: the model is on one device.",
    )
    for name in (
        "tensor_parallel_size",
        "data_parallel_size",
        "pipeline_parallel_size",
    ):
        assert of(**{name: 1}) == ({}, "")
        with pytest.raises(
            ConfigurationError, match=rf"{name}=.* is not supported.*local-completions"
        ):
            of(**{name: 2})
    with pytest.raises(ConfigurationError, match=r"tp_plan=.*devices=all has a copy"):
        of(tp_plan="auto")
    # What it does with `accelerate launch` is an argument of ours, in its place.
    assert of(devices="all", devices_per_replica=2, device="cuda") == (
        {"devices": "all", "devices_per_replica": 2, "device": "auto"},
        "",
    )
    vllm = build_backend(
        "vllm",
        {"pretrained": "org/m", "data_parallel_size": 2, "tensor_parallel_size": 4},
    )
    assert vllm.spec.arguments == {"replicas": 2, "tensor_parallel_size": 4}


@pytest.mark.skipif(
    bool(installed_tasks()), reason="lm_eval is installed: its own class runs"
)
def test_other_arguments_of_hf_run_without_the_package() -> None:
    found = build_backend("hf", {"pretrained": "org/m", "softmax_dtype": "float32"})
    assert found.spec.model == "lm/hf"
    assert "batch by batch" in found.notes[0]
    with pytest.raises(UnknownName, match="Did you mean 'softmax_dtype'"):
        open_model("lm/hf", {"pretrained": "org/m", "softmax_dtyp": "float32"})
    with pytest.raises(
        ConfigurationError, match=r"vllm serve NAME --tensor-parallel-size"
    ):
        build_backend("sglang", {"pretrained": "org/m", "tp_size": 2})


@pytest.mark.parametrize(
    "variable",
    ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"],
)
def test_one_of_several_processes_is_refused(
    tasks: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    assert harness("--tasks gen --limit 1").code == 0
    monkeypatch.setenv(variable, "2")
    monkeypatch.setenv(
        "RANK" if variable == "WORLD_SIZE" else variable.replace("SIZE", "RANK"), "1"
    )
    done = harness("--tasks gen --limit 2")
    assert done.code == 2
    assert f"process 1 of 2 that were launched together ({variable}=2)" in done.err
    assert "--model_args devices=all puts a copy" in done.err
    with pytest.raises(ConfigurationError, match="launched together"):
        simple_evaluate("scripted", tasks=["gen"], include_path="tasks")
    assert len(list((tasks / "runs").iterdir())) == 1
    assert typed("lm-eval", "ls", "groups", "--include_path", "tasks").code == 0
    native = (
        "run",
        "lm-eval:gen",
        "--task-root",
        "tasks",
        "--model",
        "scripted/hash",
        "--limit",
        "2",
    )
    refused = typed(*native)
    assert refused.code == 2
    assert "-M device_map=auto spreads" in refused.err
    assert typed(*native, "--shard", "1/2", "--name", "parts").code == 0, (
        "a shard is one of several"
    )


@pytest.mark.parametrize(
    "launcher",
    [
        "accelerate.commands.launch --num_processes 2 --cpu",
        "torch.distributed.run --nproc-per-node 2",
    ],
)
def test_a_launcher_never_runs_an_evaluation_twice(tasks: Path, launcher: str) -> None:
    pytest.importorskip("accelerate")
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("WORLD_SIZE", "RANK", "LOCAL_RANK")
    }
    done = subprocess.run(
        [sys.executable, "-m", *launcher.split(), "-m", "evalwright", "lm-eval", "--model", "dummy", "--tasks", "gen", "--include_path", "tasks"],
        cwd=tasks, env={**clean, "EVALWRIGHT_HOME": str(tasks / "home")}, capture_output=True, text=True,
    )  # fmt: skip
    runs = list((tasks / "runs").glob("*"))
    # Without mpirun, accelerate starts one process on processors.
    if launcher.startswith("torch") or done.returncode:
        assert done.returncode != 0
        assert "launched together (WORLD_SIZE=2)" in done.stderr
        assert runs == []
    else:
        assert len(runs) == 1
        assert done.stdout.count("exact_match") == 1


def test_a_script_registers_a_class_and_calls_the_command(tasks: Path) -> None:
    (tasks / "script.py").write_text(
        "from evalwright.compat.lm_eval.__main__ import cli_evaluate\n"
        "from evalwright.compat.lm_eval.api.model import LM\n"
        "from evalwright.compat.lm_eval.api.registry import register_model\n\n\n"
        "@register_model('mine')\n"
        "class Mine(LM):\n"
        "    def __init__(self, word, batch_size=1):\n        super().__init__()\n        self.word = word\n\n"
        "    def generate_until(self, requests):\n        return [self.word for _ in requests]\n\n\n"
        "if __name__ == '__main__':\n    cli_evaluate()\n    print('after')\n"
    )

    def script(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "script.py", "--model", "mine", "--tasks", "gen", "--include_path", "tasks", *arguments],
            cwd=tasks, env={**os.environ, "EVALWRIGHT_HOME": str(tasks / "home")}, capture_output=True, text=True,
        )  # fmt: skip

    done = script("--model_args", "word=Vega")
    assert done.returncode == 0, done.stderr
    assert "0.5000" in done.stdout
    assert done.stdout.rstrip().endswith("after")
    assert "--model lm/mine --plugin" in done.stderr
    wrong = script("--model_args", "wrod=Vega")
    assert wrong.returncode == 2
    assert "Did you mean 'word'" in wrong.stderr
    assert "after" not in wrong.stdout


OWN_CLASS = """
from evalwright.compat.lm_eval.api.model import LM
from evalwright.compat.lm_eval.api.registry import register_model


class Plain(LM):
    def __init__(self, word="Vega", batch_size=1):
        super().__init__()
        self.word = word

    def generate_until(self, requests):
        return [self.word for _ in requests]


@register_model("named-NUMBER")
class Named(Plain):
    pass
"""


def test_a_class_of_ones_own_is_named_by_its_file(tasks: Path) -> None:
    front = ("--include_path", "tasks", "--tasks", "gen")
    (tasks / "mine.py").write_text(OWN_CLASS.replace("NUMBER", "1"))
    unknown = typed("lm-eval", "--model", "named-1", *front)
    assert unknown.code == 2
    assert "--plugin FILE, or write --model FILE.py:Class" in unknown.err
    for model in (
        ("--model", "named-1", "--plugin", "mine.py"),
        ("--model", "mine.py:Named"),
        ("--model", "mine.py:Plain"),
    ):
        done = typed("lm-eval", *model, *front, "--model_args", "word=Mars")
        assert done.code == 0, done.err
        assert "0.5000" in done.out
        command = re.search(r"As our own command: evalwright (.*)", done.err)
        assert command
        assert "--plugin mine.py" in command[1]
        assert typed(*shlex.split(command[1])).code == 0
    wrong = typed("lm-eval", "--model", "mine.py:Plane", *front)
    assert wrong.code == 2
    assert "Did you mean 'Plain'?" in wrong.err
    gone = typed("lm-eval", "--model", "nosuch.py:Plain", *front)
    assert (gone.code, "The plug-in 'nosuch.py' does not exist." in gone.err) == (
        2,
        True,
    )
    (tasks / "theirs.py").write_text("from lm_eval.nosuch.model import LM\n")
    (tasks / "theirs.yaml").write_text("tasks: [gen]\nmodel: mine.py:Plain\n")
    refused = typed("lm-eval", "run", "--config", "theirs.yaml")
    assert (refused.code, "sets model, which a file may not" in refused.err) == (
        2,
        True,
    )
    failing = typed("lm-eval", "--model", "x", "--plugin", "theirs.py", *front)
    assert failing.code == 2
    assert "write evalwright.compat.lm_eval in place of lm_eval" in failing.err


TALKATIVE = """
from pathlib import Path

from evalwright.compat.lm_eval.api.model import LM


class Talkative(LM):
    def generate_until(self, requests):
        for request in requests:
            with Path("settings.txt").open("a") as kept:
                print(sorted(request.args[1].items()), file=kept)
        return ["Mars\\nand more" for _ in requests]
"""


def test_a_class_is_handed_the_settings_as_written_and_its_text_is_left_alone(
    tasks: Path,
) -> None:
    """As there: it is the class that stops, or does not.

    Corrected scoring ends the text at the stop string.
    """
    (tasks / "mine.py").write_text(TALKATIVE)
    line = (
        "lm-eval",
        "--model",
        "mine.py:Talkative",
        "--include_path",
        "tasks",
        "--tasks",
        "gen",
    )
    further = ("--gen_kwargs", "top_k=5,repetition_penalty=1.2")
    published = typed(
        *line, *further, "--limit", "2", "--output_path", "out", "--log_samples"
    )
    assert published.code == 0, published.err
    assert "0.0000" in published.out
    (samples,) = (tasks / "out").rglob("samples_gen_*.jsonl")
    row = json.loads(samples.read_text().splitlines()[0])
    assert row["resps"] == [["Mars\nand more"]]
    settings = ast.literal_eval((tasks / "settings.txt").read_text().splitlines()[0])
    assert dict(settings) == {
        "until": ["\n"], "do_sample": False, "max_gen_toks": 4, "top_k": 5.0, "repetition_penalty": 1.2,
    }  # fmt: skip
    corrected = typed(*line, "--scoring", "corrected")
    assert corrected.code == 0, corrected.err
    assert "0.5000" in corrected.out


COUNTING = """
from pathlib import Path

from evalwright.compat.lm_eval.api.model import LM


class Counting(LM):
    fingerprint = "counting-1"

    def generate_until(self, requests):
        calls = Path("calls.txt")
        before = int(calls.read_text()) if calls.exists() else 0
        calls.write_text(str(before + len(requests)))
        return [f"answer {before + number}" for number, _ in enumerate(requests)]
"""


@pytest.mark.parametrize(
    "settings", ["{until: ['.']}", "{until: ['.'], do_sample: false, temperature: 0}"]
)
def test_each_repeat_is_a_request_of_a_class_without_sampling_too(
    tasks: Path, settings: str
) -> None:
    """As there: a class may sample by itself. A second run pays for none of them again."""
    (tasks / "mine.py").write_text(COUNTING)
    (tasks / "tasks" / "thrice.yaml").write_text(
        f"include: gen.yaml\ntask: thrice\nrepeats: 3\ngeneration_kwargs: {settings}\n"
    )
    line = (
        "lm-eval",
        "--model",
        "mine.py:Counting",
        "--include_path",
        "tasks",
        "--tasks",
        "thrice",
    )
    for folder in ("first", "second"):
        done = typed(*line, "--limit", "2", "--output_path", folder, "--log_samples")
        assert done.code == 0, done.err
        (samples,) = (tasks / folder).rglob("samples_thrice_*.jsonl")
        answers = [json.loads(row)["resps"] for row in samples.read_text().splitlines()]
        assert answers == [
            [["answer 0", "answer 1", "answer 2"]],
            [["answer 3", "answer 4", "answer 5"]],
        ]
    assert (tasks / "calls.txt").read_text() == "6"


def test_a_tokenizer_without_a_bos_begins_without_one_as_there(
    tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from support.tiny_models import make_tiny_model

    folder = make_tiny_model(tasks / "qwen", "qwen2")
    front = (
        "lm-eval",
        "--model",
        "hf",
        "--include_path",
        "tasks",
        "--tasks",
        "sky",
        "--limit",
        "2",
    )
    numbers = []
    for more in ("", ",add_bos_token=True"):
        caplog.clear()
        done = typed(
            *front,
            "--model_args",
            f"pretrained={folder}{more}",
            "--output_path",
            f"out{more}",
            "--log_samples",
        )
        assert done.code == 0, done.err
        assert caplog.text.count("texts begin without one") == (1 if more else 0)
        (samples,) = (tasks / f"out{more}").rglob("samples_sky_*.jsonl")
        numbers.append(
            [json.loads(row)["resps"] for row in samples.read_text().splitlines()]
        )
    assert numbers[0] == numbers[1]
    refused = typed(
        "run",
        "lm-eval:sky",
        "--task-root",
        "tasks",
        "--model",
        f"hf/{folder}",
        "-M",
        "add_bos=true",
    )
    assert (refused.code, "has no BOS token. Leave add_bos out." in refused.err) == (
        2,
        True,
    )


def test_what_is_zero_or_false_is_said() -> None:
    def dialect(*line: str) -> Mapping[str, Any]:
        given = flags.read_arguments(["--tasks", "sky", "--model", "scripted", *line])
        return build_evaluation(given).configuration.dialect

    chat = ("--apply_chat_template", "--fewshot_as_multiturn")
    assert dialect(*chat, "false")["multiturn"] is False
    assert "multiturn" not in dialect(*chat, "true")
    assert dialect("--seed", "0")["seed"] == 0
    assert "seed" not in dialect()
    assert (
        "revision"
        not in build_backend(
            "hf", {"pretrained": "m", "revision": "main"}
        ).spec.arguments
    )


@pytest.mark.torch
def test_a_system_message_that_the_template_refuses_is_left_out_of_prompt_and_file(
    tasks: Path,
) -> None:
    """The file's prompt is the one that was scored, as there."""
    from support.tiny_models import STRICT_TEMPLATE, make_tiny_model

    make_tiny_model(tasks / "strict", chat=STRICT_TEMPLATE)
    settings = "--device cpu --tasks sky --limit 2 --apply_chat_template --output_path out --log_samples"
    done = typed(
        "lm-eval", "--model", "hf", "--model_args", f"pretrained={tasks / 'strict'}", "--include_path", "tasks",
        *settings.split(), "--system_instruction", "Be brief.",
    )  # fmt: skip
    assert done.code == 0, done.err
    (file,) = (tasks / "out").rglob("samples_sky_*.jsonl")
    for line in map(json.loads, file.read_text().splitlines()):
        question = f"Question: {line['doc']['question']}\nAnswer:"
        wanted = f"<s><|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
        assert line["arguments"]["gen_args_0"]["arg_0"] == wanted


def test_what_a_person_has_installed_is_trusted_and_other_folders_are_not(
    tasks: Path,
) -> None:
    found = build_evaluation(
        {"tasks": ["sky"], "include_path": "tasks", "model": "scripted"}
    ).configuration
    assert str(Path("tasks")) in found.dialect["task_root"]
    assert str(Path("tasks")) not in found.dialect.get("trust", ())


def test_a_model_made_in_python(tasks: Path) -> None:
    from evalwright.compat.lm_eval import LM, evaluate

    class Longest(LM):
        def loglikelihood(self, requests: Any) -> list[tuple[float, bool]]:
            return [(-1 / len(one.args[1]), False) for one in requests]

        def loglikelihood_rolling(self, requests: Any) -> list[float]:
            return [0.0 for _ in requests]

        def generate_until(self, requests: Any) -> list[str]:
            return ["Mars" for _ in requests]

    found = simple_evaluate(
        Longest(), tasks=["sky", "gen"], include_path="tasks", limit=4, num_fewshot=1
    )
    assert found["results"]["gen"]["exact_match,none"] == 0.5
    assert found["n-samples"]["gen"]["effective"] == 4
    assert len(found["samples"]["gen"]) == 4
    alone = evaluate(Longest(), ["gen"], include_path="tasks", limit=4)
    assert alone["results"]["gen"]["exact_match,none"] == 0.5
    with pytest.raises(UnknownName, match="nosuch"):
        simple_evaluate(Longest(), tasks=["sky"], include_path="tasks", nosuch=1)

    first = found["samples"]["sky"][0]
    assert first["arguments"][0][1].startswith(" "), (
        "a context and a choice, as a tuple"
    )
    assert first["resps"][0] == [(-1 / len(first["arguments"][0][1]), False)]
    assert first["filtered_resps"][0] == first["resps"][0][0]
    assert isinstance(first["target"], int)
    assert found["samples"]["gen"][0]["resps"] == [["Mars"]]
    from evalwright.compat.lm_eval.utils import handle_non_serializable

    text = json.dumps([numpy.int64(3), {1}, Path("a")], default=handle_non_serializable)
    assert json.loads(text) == [3, [1], "a"]
    unscored = simple_evaluate(
        Longest(),
        tasks=["gen"],
        include_path="tasks",
        limit=2,
        predict_only=True,
        home="another",
    )
    assert repr(unscored["results"]["gen"]["bypass,none"]) == "999"
    assert len(unscored["samples"]["gen"]) == 2

    import evalwright.compat.lm_eval as lm_eval

    manager = lm_eval.tasks.TaskManager(include_path="tasks", include_defaults=False)
    assert manager.all_tasks == ["gen", "heavens", "sky"]
    assert (manager.all_groups, manager.all_subtasks, manager.all_tags) == (
        ["heavens"],
        ["gen", "sky"],
        [],
    )
    assert manager.match_tasks(["s*", "gen"]) == ["gen", "sky"]
    several = lm_eval.simple_evaluate(
        Longest(), tasks=manager.match_tasks(["*e*n"]), task_manager=manager, limit=4
    )
    assert several["results"]["gen"] == found["results"]["gen"]
    asked = lm_eval.tasks.get_task_dict(["gen"], manager)
    assert (
        evaluate(Longest(), asked, limit=4)["results"]["gen"] == found["results"]["gen"]
    )
    with pytest.raises(UnknownName, match="Did you mean 'sky'"):
        lm_eval.tasks.get_task_dict("skyy", manager)
    with pytest.raises(ConfigurationError, match="does not exist"):
        lm_eval.tasks.TaskManager(include_path="nowhere")


def test_tasks_that_two_tags_share_run_once(tasks: Path) -> None:
    for name in ("one", "two"):
        (tasks / "tasks" / f"{name}.yaml").write_text(
            f"include: gen.yaml\ntask: {name}\ntag: [all, {name}s]\n"
        )
    done = harness("--tasks all,ones,two --limit 2")
    assert done.code == 0, done.err
    assert done.out.count("exact_match") == 2
    again = harness("--tasks heavens,sky --limit 2")
    assert again.code == 2, "as there: a group's member is not the task alone"
    assert "'lm-eval:sky' is named twice" in again.err


def test_shots_of_chosen_rows_are_drawn_for_these_alone(tasks: Path) -> None:
    import random

    line = '--tasks gen --num_fewshot 2 --samples {"gen":[7,3]} --output_path out --log_samples'
    assert harness(line).code == 0
    (file,) = (tasks / "out").rglob("samples_gen_*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    chance = random.Random(1234)
    assert [line["doc_id"] for line in lines] == [3, 7]
    for line in lines:
        shots = [f"Question: train {n}?" for n in chance.sample(range(8), 2)]
        prompt = line["arguments"]["gen_args_0"]["arg_0"]
        assert re.findall(r"Question: train \d\?", prompt) == shots


def page_rows() -> list[Any]:
    """Of the table of flags: those of a row with its example."""
    rows = [
        line.split(" | ")
        for line in FLAGS_PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `--")
    ]
    return [
        pytest.param(
            set(re.findall(r"`--(\w+)`", row[0])), row[1].strip("`"), id=row[0]
        )
        for row in rows
    ]


@pytest.mark.torch
@pytest.mark.parametrize(("names", "example"), page_rows())
def test_the_example_of_every_flag(
    names: set[str], example: str, tmp_path: Path, tiny: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    (tmp_path / "settings.yaml").write_text(
        "limit: 1\noutput_path: out\nlog_samples: true\n"
    )
    for name, body in re.findall(
        r"# file: (\S+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(body)
    words = shlex.split(example.replace("pretrained=gpt2", f"pretrained={tiny}"))
    assert names <= {word.removeprefix("--") for word in words}, (
        "the example has the flags of its row"
    )
    front = ["--model", "dummy", "--tasks", "planets", "--include_path", "tasks"]
    done = typed("lm-eval", *front, *words)
    missing = {"wandb", "trackio"} - {
        name for name in ("wandb", "trackio") if importlib.util.find_spec(name)
    }
    refused = bool(
        names & {"wandb_config_args", "hf_hub_log_args"}
        or (missing and "wandb_args" in names)
    )
    assert done.code == (2 if refused else 0), done.err
    said = {
        "wandb_args": "pip install 'evalwright[",
        "wandb_config_args": "logged",
        "hf_hub_log_args": "export hf-results",
    }
    for name in names & set(said) if refused else ():
        assert said[name] in done.err
    if "config" in names:
        assert len(list((tmp_path / "out").rglob("*.json*"))) == 2


def test_every_flag_there_is_taken_and_on_the_page() -> None:
    shown = {name for row in page_rows() for name in row.values[0]}
    assert shown == {name for name, *_ in flags.FLAGS}
    home = os.environ.get("LM_EVAL_TASKS")
    if not home:
        pytest.skip("the released package is not here (make test has it)")
    tree = ast.parse((Path(home).parent / "_cli" / "run.py").read_text())
    theirs = {
        str(node.args[0].value).removeprefix("--")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", "") == "add_argument"
        and isinstance(node.args[0], ast.Constant)
    }
    assert theirs == shown
    settings = ast.parse(
        (Path(home).parent / "config" / "evaluate_config.py").read_text()
    )
    (kind,) = [
        one
        for one in settings.body
        if isinstance(one, ast.ClassDef) and one.name == "EvaluatorConfig"
    ]
    keys = {
        one.target.id
        for one in kind.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    assert keys == shown, "keys of the file of --config"


@pytest.mark.parametrize(
    ("mode", "where_logged"),
    [("offline", ["offline"]), ("online", ["online"]), ("disabled", [])],
)
def test_weights_and_biases_gets_its_mode(
    tasks: Path, monkeypatch: pytest.MonkeyPatch, mode: str, where_logged: list[str]
) -> None:
    """Who asks for offline or disabled sends nothing to a server."""
    from evalwright.trackers import tracker

    logged: list[str] = []

    def log(run: Any, where: str, before: str) -> str:
        logged.append(os.environ["WANDB_MODE"])
        return "id"

    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setitem(sys.modules, "wandb", ModuleType("wandb"))
    monkeypatch.setattr(tracker._TRACKERS, "get", lambda name: log)
    done = harness(f"--tasks gen --limit 1 --wandb_args project=planets,mode={mode}")
    assert done.code == 0, done.err
    assert logged == where_logged
    assert "WANDB_MODE" not in os.environ, "it holds for this run alone"
    assert ("nothing is logged" in done.err) == (mode == "disabled")


def test_lists_and_validation(tasks: Path) -> None:
    assert (
        typed("lm-eval", "ls", "groups", "--include_path", "tasks").out.split()[-1]
        == "heavens"
    )
    assert (
        "gen" in typed("lm-eval", "ls", "tasks", "--include_path", "tasks").out.split()
    )
    assert typed(
        "lm-eval", "validate", "--tasks", "sky,gen", "--include_path", "tasks"
    ).out.startswith("2 tasks can be read")
    assert (
        typed("lm-eval", "validate", "--tasks", "skyy", "--include_path", "tasks").code
        == 2
    )


BESIDE = """
include: ../shared/base.yaml
task: beside
dataset_kwargs: {data_files: {test: data/test.jsonl}}
"""


def test_shared_settings_and_data_beside_a_named_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The usual layout: project/tasks, project/shared, project/data, and the command line is
    typed in project.
    """
    project = tmp_path / "project"
    for name in ("tasks", "shared", "data"):
        (project / name).mkdir(parents=True)
    base = (
        GEN.replace("include: sky.yaml\n", "")
        + "dataset_path: json\ntest_split: test\ndoc_to_text: '{{question}}'\n"
    )
    (project / "shared" / "base.yaml").write_text(base)
    (project / "tasks" / "beside.yaml").write_text(BESIDE)
    row = {"question": "Which?", "choices": ["Mars", "Vega"], "answer": 0}
    (project / "data" / "test.jsonl").write_text(json.dumps(row) + "\n")
    (project / "data" / ".secret.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "elsewhere.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.chdir(project)
    line = ("--model", "scripted", "--tasks", "beside", "--include_path", "tasks")
    done = typed("lm-eval", *line, "--write_out")
    assert done.code == 0, done.err
    command = re.search(r"As our own command: evalwright (.*)", done.err)
    assert command
    assert typed(*shlex.split(command[1])).code == 0
    assert (
        typed(
            "lm-eval", "validate", "--tasks", "beside", "--include_path", "tasks"
        ).code
        == 0
    )

    with pytest.raises(
        TaskError, match=r"from Python: include_path\).*from Python: trust="
    ):
        simple_evaluate("scripted", tasks=["beside"], include_path="tasks")
    (project / "settings.yaml").write_text(
        "model: scripted\ntasks: [beside]\ninclude_path: tasks\n"
    )
    assert typed("lm-eval", "run", "--config", "settings.yaml").code == 2, (
        "a file may be a stranger's"
    )

    file = project / "tasks" / "beside.yaml"
    for other in (
        "data/.secret.jsonl",
        "../elsewhere.jsonl",
        str(tmp_path / "elsewhere.jsonl"),
    ):
        file.write_text(BESIDE.replace("data/test.jsonl", other))
        refused = typed("lm-eval", *line)
        assert refused.code == 2, other
        assert "which is outside its folder" in refused.err
