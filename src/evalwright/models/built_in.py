"""The backends of this package by provider name, as data: where each is, and an example of a name."""

from __future__ import annotations

BUILT_IN: dict[str, str] = {
    "answers": "evalwright.models.answers:RecordedAnswers",
    "baseline": "evalwright.models.judges.baseline:LexicalBaseline",
    "bertscore": "evalwright.models.rewards.local:BertScoreModel",
    "comet": "evalwright.models.rewards.comet:CometModel",
    "demo": "evalwright.models.local.demo:demo_model",
    "hdm2": "evalwright.models.judges.hdm2:Hdm2Model",
    "hf": "evalwright.models.local.hf.model:TransformersModel",
    "hhem": "evalwright.models.judges.trained:HhemModel",
    "likelihood": "evalwright.models.rewards.likelihood:likelihood_model",
    "litellm": "evalwright.models.remote.litellm:LiteLLMModel",
    "lm": "evalwright.compat.lm_eval.models.adapter:lm_model",
    "lm_eval": "evalwright.compat.lm_eval.models.adapter:lm_eval_model",
    "metricx": "evalwright.models.rewards.local:MetricXModel",
    "minicheck": "evalwright.models.judges.trained:MiniCheckModel",
    "nli": "evalwright.models.judges.trained:NliModel",
    "onnx": "evalwright.models.local.onnx.model:OnnxModel",
    "oracle": "evalwright.models.oracle:OracleModel",
    "replay": "evalwright.models.replay:ReplayModel",
    "reward": "evalwright.models.rewards.local:HeadModel",
    "reward-server": "evalwright.models.rewards.server:RewardServer",
    "scripted": "evalwright.models.scripted:scripted_model",
    "st": "evalwright.models.local.sentence_embedder:SentenceEmbedder",
    "vectara": "evalwright.models.judges.vectara:VectaraModel",
    "verdict": "evalwright.models.rewards.likelihood:verdict_model",
    "vllm-local": "evalwright.models.local.vllm_model:VllmModel",
}

OPEN_ARGUMENTS = frozenset({"likelihood", "lm", "lm_eval", "verdict"})
"""Backends whose arguments are those of another class, which may mean anything."""

EXTRAS: dict[str, str] = {
    **dict.fromkeys(
        ("bertscore", "comet", "hf", "hhem", "metricx", "minicheck", "nli", "reward", "st"), "hf"
    ),
    "litellm": "litellm",
    "vllm-local": "vllm",
}
"""The extra of this package that a backend needs."""

EXAMPLES: dict[str, tuple[str, str]] = {
    "answers": ("answers/NAME", "the author of the answers in a data file; nothing is generated"),
    "baseline": ("baseline/lexical", "a baseline judge of consistency that compares words, no download"),
    "bertscore": ("bertscore/roberta-large", "a reward: BERTScore against a reference (the extra hf)"),
    "comet": ("comet/path/to/folder", "a reward: a COMET regression metric of translations (the extra hf)"),
    "demo": ("demo/small", "the embedded demonstration models: demo/small, demo/large"),
    "hf": ("hf/Qwen/Qwen3-0.6B", "a transformers model: hub id or folder (pip install 'evalwright[hf]')"),
    "hdm2": (
        "hdm2/AimonLabs/hallucination-detection-model",
        "a judge of consistency: HDM-2 (pip install 'evalwright[peft]')",
    ),
    "hhem": (
        "hhem/vectara/hallucination_evaluation_model",
        "a judge of consistency: HHEM-2.1-Open (pip install 'evalwright[hf]')",
    ),
    "likelihood": ("likelihood/hf/gpt2", "a reward: a model's mean log-likelihood of the reply's tokens"),
    "litellm": (
        "litellm/openai/gpt-4o-mini",
        "any model that the library litellm can call (pip install 'evalwright[litellm]')",
    ),
    "lm": ("lm/my-model", "a class of lm-evaluation-harness's model interface, from --plugin my_model.py"),
    "lm_eval": ("lm_eval/dummy", "a model of the installed package lm_eval, with its arguments as -M"),
    "metricx": (
        "metricx/google/metricx-24-hybrid-large-v2p6",
        "a reward: MetricX, minus the errors of a translation (the extra hf)",
    ),
    "minicheck": (
        "minicheck/lytang/MiniCheck-Flan-T5-Large",
        "a judge of consistency: MiniCheck (the extra hf)",
    ),
    "nli": (
        "nli/path/to/checkpoint",
        "a judge of consistency: any sequence classifier of pairs (the extra hf)",
    ),
    "onnx": ("onnx/path/to/folder", "an exported ONNX decoder with its tokenizer.json; no torch"),
    "oracle": ("oracle/gold", "a SIMULATION that gives the gold answers (oracle/wrong, -M share=0.7)"),
    "replay": ("replay/answers.jsonl", "answers from recorded responses or an earlier run"),
    "reward": (
        "reward/Skywork/Skywork-Reward-V2-Qwen3-0.6B",
        "a reward model with a sequence-classification head (the extra hf)",
    ),
    "reward-server": (
        "reward-server/http://localhost:8000#my-model",
        "a reward model behind an HTTP endpoint",
    ),
    "scripted": ("scripted/echo", "fixed answers, for trying out tasks"),
    "st": (
        "st/path/to/folder",
        "an embedder in the format of sentence-transformers, for similarity (the extra hf)",
    ),
    "verdict": ("verdict/hf/Qwen/Qwen3-0.6B", "a reward: a model's log-odds of Yes against No about a reply"),
    "vllm-local": (
        "vllm-local/Qwen/Qwen3-0.6B",
        "a model in vLLM in this process, on a GPU (pip install 'evalwright[vllm]')",
    ),
    "vectara": ("vectara/hhem_v2.3", "a judge of consistency: Vectara's interface, needs VECTARA_API_KEY"),
}
"""Per provider an example of a name, and what it is."""
