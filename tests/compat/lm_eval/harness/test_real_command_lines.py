"""Command lines as people have written them, from public pages and repositories: each runs, or is refused for the right reason.

Only what cannot be here is another one: the model's name is a tiny model's folder, an address is a server on loopback, and the tasks have
rows of our own. The program (`lm_eval`, `accelerate launch ... -m lm_eval`, `python main.py`) becomes `evalwright lm-eval`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.openai_server import OpenAIServer, serving
from support.typed import typed

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:MatMul8bitLt")]
pytest.importorskip("datasets")

CLASS = "needs the class of lm_eval itself: pip install"
# (where it was found, the line, what its refusal says; "" where it runs)
HARNESS = "https://pypi.org/project/lm-eval/0.4.13"
GITHUB = "https://github.com"
LINES = (
    (HARNESS, "lm_eval --model hf --model_args pretrained=EleutherAI/gpt-j-6B --tasks hellaswag --device cuda:0 --batch_size 8", ""),
    (HARNESS, "lm_eval --model hf --model_args pretrained=EleutherAI/pythia-160m,revision=step100000,dtype=\"float\" --tasks lambada_openai,hellaswag --device cuda:0 --batch_size auto:4", ""),
    (HARNESS, "accelerate launch -m lm_eval --model hf --tasks lambada_openai,arc_easy --batch_size 16", "pretrained=NAME"),
    (HARNESS, "lm_eval --model openai --model_args engine=davinci-002 --tasks lambada_openai,hellaswag --check_integrity", "write --model openai-completions"),
    (HARNESS, "lm_eval --model nemo_lm --model_args path=MODEL --tasks hellaswag --batch_size 32", CLASS),
    (HARNESS, "lm_eval --model sglang --model_args pretrained=MODEL,dp_size=1,tp_size=2,dtype=auto --tasks gsm8k_cot --batch_size auto", CLASS),
    (HARNESS, "lm_eval --model hf --model_args pretrained=MODEL,autogptq=model.safetensors,gptq_use_triton=True --tasks hellaswag --log_samples --output_path results --hf_hub_log_args hub_results_org=EleutherAI,hub_repo_name=lm-eval-results,push_results_to_hub=True,push_samples_to_hub=True,public_repo=False", "."),
    (HARNESS, "lm_eval --model hf --model_args pretrained=microsoft/phi-2,trust_remote_code=True --tasks hellaswag,mmlu_abstract_algebra --device cuda:0 --batch_size 8 --output_path output/phi-2 --limit 10 --wandb_args project=lm-eval-harness-integration --log_samples", r"evalwright\[wandb\]"),
    (f"{GITHUB}/EleutherAI/lm-evaluation-harness/blob/main/docs/interface.md", "lm-eval run --model hf --model_args pretrained=gpt2 dtype=float32 --tasks hellaswag", ""),
    (f"{GITHUB}/EleutherAI/lm-evaluation-harness/blob/main/docs/interface.md", "lm-eval run --model vllm --model_args pretrained=EleutherAI/gpt-j-6B --tasks arc_easy arc_challenge --num_fewshot 5", CLASS),
    (f"{GITHUB}/EleutherAI/lm-evaluation-harness/blob/main/docs/interface.md", "lm-eval run --model hf --model_args pretrained=gpt2 --tasks lambada --gen_kwargs temperature=0.8 top_p=0.95 'stop=[\"\\n\\n\"]'", ""),
    (f"{GITHUB}/EleutherAI/lm-evaluation-harness/blob/main/docs/interface.md", "lm-eval run --model hf --model_args pretrained=gpt2 --tasks hellaswag --output_path ./results/ --log_samples", ""),
    (f"{GITHUB}/EleutherAI/lm-evaluation-harness/issues/2292", "accelerate launch --num_processes 2 -m lm_eval --model hf --model_args pretrained=mistralai/Mistral-7B-v0.3 --tasks winogrande --num_fewshot 0 --batch_size 16", ""),
    (f"{GITHUB}/open-lm-engine/lm-evaluation-harness/blob/main/scripts/eval-lm.sh", "accelerate launch -m lm_eval --model hf --model_args dtype=bfloat16,pretrained=MODEL --tasks wikitext,openbookqa,piqa,sciq,arc_easy,arc_challenge,boolq,copa,hellaswag,winogrande,race,lambada_openai --batch_size auto --output_path results-base", ""),
    (f"{GITHUB}/Matrix-King-Studio/AccelerateModelInference/blob/main/lm-evaluate.sh", "lm_eval --model hf --model_args pretrained=Qwen/Qwen-7B,trust_remote_code=True,load_in_8bit=True --tasks arc_challenge,hellaswag,piqa --device cpu --batch_size 16 --output_path ./lm-eval-output", ""),
    (f"{GITHUB}/shiweijiezero/mydistill/blob/main/distillGPT_openwebtext/eval_command.sh", "lm_eval --model hf --model_args pretrained=./save_model/gpt2_hf_end,trust_remote_code=true,dtype=bfloat16 --tasks glue,gsm8k,boolq,mmlu,cmmlu --batch_size 64 --output_path ./eval_out/gpt2_openwebtext --device cuda:0", ""),
    (f"{GITHUB}/ryanyxw/phdbrainstorm/blob/main/eval_token_prefix.sh", "accelerate launch -m lm_eval --model hf --model_args pretrained=meta-llama/Meta-Llama-3-8B --tasks mmlu,mmlu_generative,pubmed_qa,wikitext --batch_size auto:4", ""),
    (f"{GITHUB}/mz687/radius/blob/main/eval_model/lm-harness/355M", "lm-eval --model hf --model_args pretrained=PATH --tasks lambada,race,winogrande,wikitext,squad_completion,squadv2,mathqa,piqa,glue,super-glue-lm-eval-v1 --batch_size 64 --output_path OUT --device cuda:1 --trust_remote_code", ""),
    (f"{GITHUB}/alexstein0/efficient_tokenization_for_inference/blob/main/scripts/benchmark.sh", "accelerate launch --num_processes 8 -m lm_eval --model hf --model_args \"pretrained=meta-llama/Llama-3.2-1B,parallelize=True,do_sample=True,temperature=0.7,top_p=3\" --tasks minerva_math --batch_size 4 --trust_remote_code --output_path \"./eval_results.json\" --num_fewshot 4 --limit 100", "do_sample"),
    (f"{GITHUB}/allenlee-37/KT-lm-evaluation-harness/blob/main/sh_scripts/midm2.0-8b-mmlu-pro.sh", "lm_eval --model hf --model_args pretrained=MODEL --tasks leaderboard_mmlu_pro --output_path output --batch_size auto --log_samples --apply_chat_template --limit 10", ""),
    (f"{GITHUB}/wenkai-li/llm_personality/blob/main/evaluation/lm-evaluation-harness/script.md", "lm_eval --model hf --tasks gsm8k --model_args pretrained=meta-llama/Meta-Llama-3-70B-Instruct,parallelize=True --batch_size 8 --apply_chat_template", ""),
    (f"{GITHUB}/FGinfinite/Qualitiy-Gate/blob/main/scripts/eval.sh", "accelerate launch -m lm_eval --model hf --model_args pretrained=meta-llama/Llama-2-7b-hf,peft=outputs/checkpoint-1804 --tasks mmlu --batch_size auto --output_path outputs/stage_4_eval", "outputs/checkpoint-1804"),
    (f"{GITHUB}/Novemser/lm-bench/blob/main/scripts/eval_lambada.sh", "lm_eval --model hf --model_args pretrained=./llama3_hf_weights,dtype=\"float32\",record_weight_wise_activation=True,output_path=./output --tasks lambada_openai --device cpu --batch_size auto:1 --output_path ./output", "record_weight_wise_activation"),
    (f"{GITHUB}/fglx-c/Exploring-Scientific-Hypothesis-Generation-with-Mamba/blob/main/models/Mamba/Auto_Scripts/Mamba-790m.sh", "accelerate launch -m lm_eval --model hf --model_args pretrained=state-spaces/mamba-790m-hf --tasks scrolls_quality,scrolls_narrativeqa,scrolls_contractnli --batch_size 8 --trust_remote_code", ""),
    ("https://huggingface.co/spaces/evalitahf/evalita_llm_leaderboard/blob/main/run_instructions.txt", "lm_eval --model hf --model_args pretrained=google/gemma-3-12b-it --tasks evalita-mp --device cuda:0 --batch_size 1 --trust_remote_code --output_path model_output --num_fewshot 5 --", ""),
    ("https://huggingface.co/mgoin/nemotron-3-8b-chat-4k-sft-hf", "lm_eval --model vllm --model_args pretrained=MODEL --tasks gsm8k --num_fewshot 5 --batch_size auto", CLASS),
    ("https://huggingface.co/RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "lm_eval --model vllm --model_args pretrained=\"neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8-dynamic\",dtype=auto,add_bos_token=True,max_model_len=4096,tensor_parallel_size=1 --tasks gsm8k_cot_llama_3.1_instruct --apply_chat_template --num_fewshot 8 --batch_size auto", CLASS),
    (f"{GITHUB}/NKWBTB/lm-evaluation-harness/blob/main/run_eval.sh", "lm_eval --model vllm --model_args pretrained=mistralai/Mistral-7B-Instruct-v0.1,dtype=auto,gpu_memory_utilization=0.7 --tasks xlsum --batch_size auto --output_path sum_test/ --apply_chat_template --limit 10 --log_samples", CLASS),
    (f"{GITHUB}/parsiyte/LLM-GPU-Energy-Evaluation/blob/main/model_scripts/vllama_3_1_8b.sh", "lm_eval --model vllm --model_args pretrained=MODEL,dtype=auto,max_model_len=4096,max_gen_toks=1024,tensor_parallel_size=1 --fewshot_as_multiturn --num_fewshot 3 --tasks bbh --batch_size auto", "--fewshot_as_multiturn needs --apply_chat_template"),
    (f"{GITHUB}/zejunchen-zejun/ATOMModelBackendValidationHelper/blob/main/lmeval/llm.235.sh", "lm_eval --model local-completions --model_args model=/data/models/Qwen3-235B,base_url=http://localhost:8000/v1/completions,num_concurrent=65,max_retries=1,tokenized_requests=False --tasks gsm8k --num_fewshot 3", ""),
    (f"{GITHUB}/sgl-project/sglang/blob/main/evaluation/lm_eval_qwen3next.sh", "lm_eval --model local-completions --tasks gsm8k --model_args model=/data/models/Qwen/Qwen3-Next-80B-A3B-Instruct,base_url=http://localhost:8080/v1/completions --batch_size auto --num_fewshot 5 --limit 250 --seed 123", ""),
    (f"{GITHUB}/fuheaven/lightllm/blob/main/test/acc/test_qwen2.sh", "lm_eval --model local-completions --model_args '{\"model\":\"Qwen/Qwen2.5-Math-7B-Instruct\", \"base_url\":\"http://localhost:8089/v1/completions\", \"max_length\": 16384}' --tasks gsm8k --batch_size 500 --confirm_run_unsafe_code", ""),
    (f"{GITHUB}/bdsaglam/lm-evaluation-harness/blob/main/run/gsm8k.sh", "lm_eval --output_path outputs --log_samples --apply_chat_template --model openai-chat-completions --tasks gsm8k,gsm8k_cot_zeroshot,gsm8k_cot_llama --model_args model=MODEL,num_concurrent=8,tokenizer=None,base_url=http://0.0.0.0:8000/v1/chat/completions", ""),
    (f"{GITHUB}/LiSheng2001/lm-evaluation-harness/blob/main/lm_eval_MJEE_glm4.sh", "lm_eval --model openai-chat-completions --model_args model=GLM-4-FlashX,base_url=https://open.bigmodel.cn/api/paas/v4/chat/completions,max_retries=3,num_concurrent=1,eos_string=\"</s>\" --tasks MJEE_logic_2023_shuffle --apply_chat_template --log_samples --output_path lm_eval_output", ""),
    (f"{GITHUB}/llxcfamily/lm-evaluation-harness/blob/main/run_hellaswag.sh", "python main.py --model hf-causal --model_args pretrained=\"../models/llama-7b-hf/\" --tasks \"hellaswag\" --batch_size 16 --output_path ./hellaswag_llama_7b.json --device cuda:0 --limit 10", "write --model hf"),
    (f"{GITHUB}/EleutherAI/lm-evaluation-harness/issues/1235", "lm_eval --model hf-causal --model_args pretrained=/path/to/llama2-7b --tasks lambada_standard --device cuda:0 --batch_size 16", "write --model hf"),
    (f"{GITHUB}/EleutherAI/lm-evaluation-harness/issues/2836", "lm-eval --tasks list", "evalwright lm-eval ls tasks"),
    (f"{GITHUB}/h2oai/h2ogpt/issues/35", "python main.py --model hf-causal-experimental --model_args pretrained=h2oai/h2ogpt-oig-oasst1-256-12b --tasks openbookqa,arc_easy,winogrande,hellaswag,arc_challenge,piqa,boolq --device cuda", "write --model hf"),
    (f"{GITHUB}/kumapo/lm-evaluation-harness/blob/main/models/llama2/llama2-7b/harness.jcola.sh", "python main.py --model hf-causal-experimental --model_args pretrained=meta-llama/Llama-2-7b-hf,use_accelerate=True,dtype=auto --tasks jcola-0.1-0.3 --num_fewshot 3 --device cuda --output_path result.jcola.json --batch_size 2", "write parallelize=True.*write --model hf"),
    (f"{GITHUB}/arcee-ai/DAM/blob/main/evals/lm-evaluation-harness/models/cyberagent/cyberagent-open-calm-medium/harness.jsquad-1.2.sh", "python main.py --model hf-causal --model_args pretrained=cyberagent/open-calm-medium,use_fast=True,device_map=auto,torch_dtype=auto --tasks jsquad-1.2-0.2 --num_fewshot 3 --device cuda --output_path result.jsquad-1.2.json", "write use_fast_tokenizer=.*write --model hf"),
    (f"{GITHUB}/wellecks/lm-evaluation-harness/blob/main/eval_scripts/eval_minif2f_isabelle_accelerate.sh", "python main.py --description_dict_path configs/config_minif2f_isabelle.json --model_args pretrained=EleutherAI/pythia-1.4b-deduped --num_fewshot 0 --model hf-causal --use_accelerate --accelerate_dtype float32 --tasks minif2f_isabelle --batch_size 1 --output_path output/pythia.json", "--use_accelerate is of an older lm_eval.*write --model hf"),
    ("https://huggingface.co/spaces/open-llm-leaderboard/open_llm_leaderboard", "python main.py --model=hf-causal-experimental --model_args=\"pretrained=MODEL,use_accelerate=True,revision=main\" --tasks=arc_challenge --num_fewshot=25 --batch_size=1 --output_path=out.json", "write parallelize=True.*write --model hf"),
    (f"{GITHUB}/kevin-zhang-1/An-Exploration-of-Sampling-Stratigies-for-Diffusion-Large-Language-Models", "accelerate launch --config_file accelerate_config.yaml evaluation_script.py -m lm_eval --model LLADA --tasks humaneval --batch_size 1 --model_args \"pretrained=GSAI-ML/LLaDA-8B-Base,parallelize=False\" --gen_kwargs \"block_length=256,gen_length=256,cfg_scale=0.0 \" --num_fewshot 0 --output_path ./humaneval_log/ --log_samples --confirm_run_unsafe_code", "Unknown model class 'LLADA'"),
    (f"{GITHUB}/EleutherAI/lm-evaluation-harness/pull/1992", "lm_eval --model openai-chat-completions --model_args model=gpt-4o-mini,num_concurrent=5 --tasks humaneval_greedy --apply_chat_template", "runs code that the model wrote"),
)  # fmt: skip
CHOICES = """
task: NAME
dataset_path: json
dataset_kwargs: {data_files: {train: rows.jsonl, test: rows.jsonl}}
output_type: multiple_choice
training_split: train
test_split: test
doc_to_text: "Q: {{question}}\\nA:"
doc_to_choice: "{{choices}}"
doc_to_target: answer
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
TEXTS = """
task: NAME
dataset_path: json
dataset_kwargs: {data_files: {train: rows.jsonl, test: rows.jsonl}}
output_type: generate_until
training_split: train
test_split: test
doc_to_text: "Q: {{question}}\\nA:"
doc_to_target: "{{choices[answer]}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 4}
metric_list: [{metric: exact_match}]
"""
GENERATED = re.compile(
    r"gsm8k|lambada$|cmmlu|squad|minerva|xlsum|scrolls|MJEE|evalita|humaneval|jcola|generative|bbh"
)
ROLLING = "output_type: loglikelihood_rolling\ndoc_to_text: ''\ndoc_to_target: '{{question}}'\nmetric_list: [{metric: word_perplexity}]\n"
ROWS = "".join(
    f'{{"question": "Is {n} even?", "choices": ["no", "yes"], "answer": {1 - n % 2}}}\n' for n in range(6)
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from support.tiny_models import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("tiny"), chat=True)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with serving() as opened:
        yield opened


def ours(line: str, tiny: Path, server: OpenAIServer) -> list[str]:
    """What a person writes here, with what cannot be here replaced."""
    words = shlex.split(line)
    program = max(
        at for at, word in enumerate(words[:9]) if Path(word).name in ("lm_eval", "lm-eval", "main.py")
    )
    text = "\0".join(words[program + 1 :])
    text = re.sub(r"(?<=pretrained=)[^,\0]*(,revision=\w+)?", str(tiny), text)
    return re.sub(r"https?://[^/,\"\0]+(/[\w/]+)?/v\d/", f"{server.url}/", text).split("\0")


@pytest.mark.parametrize(("source", "line", "refused"), LINES, ids=[str(n) for n in range(len(LINES))])
def test_a_command_line(
    source: str,
    line: str,
    refused: str,
    tiny: Path,
    server: OpenAIServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    words = ours(line, tiny, server)
    names = re.split(r"[,\0]", re.split(r"\0--?\w", re.split(r"--tasks[\0=]", "\0".join(words))[1])[0])
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "rows.jsonl").write_text(ROWS)
    for name in names:
        body = (TEXTS if GENERATED.search(name) else CHOICES).replace("NAME", name)
        if name == "wikitext":
            body = re.sub(r"(?m)^(output_type|doc_to_\w+|metric_list).*\n", "", body) + ROLLING
        if name.startswith("humaneval"):
            body += "unsafe_code: true\n"
        (tmp_path / "tasks" / f"{name}.yaml").write_text(body)
    done = typed("lm-eval", *words, "--include_path", "tasks")
    assert "Traceback" not in done.err
    assert done.code == (2 if refused else 0), f"{source}: {done.err}"
    if refused:
        assert re.search(refused, done.err), f"{source}: {done.err}"
    else:
        assert all(f"|{name}" in done.out for name in names), done.out
        assert ("--output_path" not in words) or list(tmp_path.rglob("*_20*.json"))
