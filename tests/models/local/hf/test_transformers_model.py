"""The hf backend from outside: what it knows before it loads, what names it, and what it
refuses.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evalwright
from evalwright.core.errors import (
    AbilityError,
    ConfigurationError,
    Failure,
    ModelError,
    UnknownName,
)
from evalwright.core.requests import Embed, Generate, LogLikelihood, Message, Request
from evalwright.core.responses import Response
from evalwright.models.local.hf.transformers_model import TransformersModel
from evalwright.models.registry import open_model
from support.local_models import answers, engine_of, log_likelihood
from support.tiny_models import make_tokenizer

pytestmark = pytest.mark.torch


def copy_of(folder: Path, where: Path) -> Path:
    return Path(shutil.copytree(folder, where))


def test_nothing_heavy_before_it_is_needed(folders: dict[str, Path]) -> None:
    code = (
        "import sys; from evalwright.models.registry import open_model; m = open_model(sys.argv[1]); m.check(); "
        "m.describe(); assert not {'torch', 'transformers', 'huggingface_hub'} & set(sys.modules); print(m.fingerprint)"
    )
    source = str(Path(evalwright.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, f"hf/{folders['llama']}"],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == open_model(f"hf/{folders['llama']}").fingerprint


def test_abilities_and_description(folders: dict[str, Path]) -> None:
    model = open_model(f"hf/{folders['llama']}", {"device": "cpu"})
    assert isinstance(model, TransformersModel)
    assert model.abilities == {"generate", "log-likelihood", "rolling", "chat"}
    assert "chat" not in open_model(f"hf/{folders['plain']}").abilities
    before = model.describe()
    assert before["architecture"] == "LlamaForCausalLM"
    assert (before["dtype"], before["device"], before["context_length"]) == (
        "float32",
        "cpu",
        128,
    )
    assert before["chat_template"] is True
    assert json.loads(json.dumps(before)) == before
    assert before.pop("scoring") == {"path": "auto"}
    model.load()
    after = model.describe()
    assert after.pop("scoring") == {"path": "tree", "attention": "cascade"}
    assert after == before, "the parameters in the file's header are those of the model"
    model.unload()
    assert model._engine is None


def test_the_fingerprint_follows_what_changes_answers(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = folders["llama"]
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages[0]['content'] }}")

    def of(**arguments: Any) -> str:
        return TransformersModel(
            str(folder), **{"device": "cpu", **arguments}
        ).fingerprint

    base = of()
    assert of(scoring="plain") == base, "the ways of scoring agree up to rounding"
    assert of() == of(batch_size=4) == of(max_tokens=256) == of(dtype="float32") == base
    assert (
        TransformersModel(
            str(copy_of(folder, tmp_path / "copy")), device="cpu"
        ).fingerprint
        == base
    )
    four = of(quantization="bitsandbytes-4bit")
    assert four == of(
        quantization={
            "method": "bitsandbytes-4bit",
            "quant_type": "nf4",
            "double_quant": False,
        }
    )
    others = [
        of(dtype="bfloat16"),
        of(max_length=64),
        of(add_special_tokens=False),
        of(add_bos=True),
        of(chat_template=str(template)),
        of(enable_thinking=False),
        of(chat_template_args={"enable_thinking": True}),
        of(tokenizer=str(folders["strict"])),
        of(attn_implementation="eager"),
        of(max_tokens=17),
        of(prefix_token="</s>"),
        of(quantization="bitsandbytes-8bit"),
        four,
        of(quantization={"method": "bitsandbytes-4bit", "double_quant": True}),
        of(quantization={"method": "bitsandbytes-4bit", "compute_dtype": "bfloat16"}),
        TransformersModel(str(folders["strict"]), device="cpu").fingerprint,
    ]
    assert len({base, *others}) == len(others) + 1
    changed = copy_of(folder, tmp_path / "changed")
    weights = bytearray((changed / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (changed / "model.safetensors").write_bytes(weights)
    assert TransformersModel(str(changed), device="cpu").fingerprint != base


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"quantisation": "x"}, UnknownName, "Did you mean 'quantization'"),
        ({"use_fast_tokenizer": False}, ConfigurationError, "one kind of tokenizer"),
        ({"batchsize": 1}, UnknownName, "Did you mean 'batch_size'"),
        *(
            ({"batch_size": wrong}, ConfigurationError, "batch_size=.*whole number")
            for wrong in ("many", 0, -1, True, 1.5, "0")
        ),
        *(
            ({"prefix_token": wrong}, ConfigurationError, "prefix_token")
            for wrong in (True, "", 1.5)
        ),
        ({"add_bos": "maybe"}, ConfigurationError, "true or false"),
        ({"dtype": "int4"}, ConfigurationError, "dtype='int4' is not known"),
        ({"device": "tpu"}, ConfigurationError, "is not a device"),
        (
            {"device": "cuda:0,cuda:1"},
            ConfigurationError,
            "use -M devices=cuda:0,cuda:1",
        ),
        ({"scoring": "fast"}, ConfigurationError, "must be one of auto, tree, plain"),
        ({"max_length": 4096}, ConfigurationError, "more than the 128 tokens"),
        ({"max_length": 0}, ConfigurationError, "whole number"),
        (
            {"chat_template": "nowhere.jinja"},
            ConfigurationError,
            "neither a file nor a template",
        ),
        ({"chat_template_args": "x"}, ConfigurationError, "must be a mapping"),
        ({"chat_template": False}, ConfigurationError, "--format text"),
        ({"tokenizer": "./nowhere"}, ConfigurationError, "no model folder"),
        ({"revision": "main"}, ConfigurationError, "no revisions"),
    ],
)
def test_arguments_that_do_not_fit(
    folders: dict[str, Path],
    arguments: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        open_model(f"hf/{folders['llama']}", arguments)


def test_check_and_load_say_what_cannot_work(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = copy_of(folders["llama"], tmp_path / "model")
    TransformersModel(str(folder)).check()
    config = json.loads((folder / "config.json").read_text())
    for architecture in ("EncoderDecoderModel", "BertForSequenceClassification"):
        (folder / "config.json").write_text(
            json.dumps({**config, "architectures": [architecture]})
        )
        with pytest.raises(
            AbilityError, match="not a language model that generates text"
        ):
            TransformersModel(str(folder)).check()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(ModelError, match="cannot be loaded"):
        TransformersModel(str(folder), device="cpu").load()
    (folder / "model.safetensors").unlink()
    with pytest.raises(ConfigurationError, match="has no weights"):
        TransformersModel(str(folder)).check()
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="tokenizer"):
        TransformersModel(str(folder), device="cpu").load()
    with pytest.raises(ConfigurationError, match="no BOS token"):
        TransformersModel(str(folders["qwen2"]), device="cpu", add_bos=True).load()
    make_tokenizer("llama", vocab=600).save_pretrained(tmp_path / "other")
    model = TransformersModel(
        str(folders["llama"]), device="cpu", tokenizer=str(tmp_path / "other")
    )
    with pytest.raises(ConfigurationError, match="do not match"):
        model.load()


def test_a_prefix_token_stands_before_a_text_without_context(
    folders: dict[str, Path],
) -> None:
    from transformers import AutoTokenizer

    end = AutoTokenizer.from_pretrained(folders["llama"]).eos_token_id
    plain = TransformersModel(
        str(folders["llama"]), device="cpu", add_special_tokens=False
    )
    expected = log_likelihood(plain, "</s>", "Iron melts")
    for prefix in ("</s>", end):
        model = TransformersModel(
            str(folders["llama"]), device="cpu", prefix_token=prefix
        )
        assert log_likelihood(model, "", "Iron melts") == pytest.approx(
            expected, abs=1e-5
        )
    for wrong in ("<nowhere>", 10**6):
        with pytest.raises(ConfigurationError, match="not a token of this tokenizer"):
            TransformersModel(
                str(folders["llama"]), device="cpu", prefix_token=wrong
            ).load()


def test_a_mixed_batch_is_answered_once_each_and_nothing_is_written_over_the_runs_output(
    folders: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    model = TransformersModel(str(folders["llama"]), device="cpu", max_tokens=4)
    requests: list[Request] = [
        Generate("a"), LogLikelihood("a", " b"), Embed("a"), Generate((Message("user", "x"),)),
        Generate("\ud800"), LogLikelihood("long " * 400, " b"),
    ]  # fmt: skip
    found = dict(model.answer_batch(requests))
    assert sorted(found) == list(range(6))
    assert isinstance(found[0], Response)
    assert isinstance(found[2], Failure)
    assert "cannot answer 'embed'" in found[2].message
    assert isinstance(found[4], Failure)
    assert dict(model.answer_batch([])) == {}
    model.unload()
    model.unload()
    assert isinstance(found[1], Response)
    again = log_likelihood(model, "a", " b")
    assert again == pytest.approx(found[1].log_likelihood, abs=1e-5), "it answers again"
    assert capfd.readouterr() == ("", "")


def test_marks_of_reasoning_stay_in_the_text(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    from evalwright.core.reasoning import separate_reasoning
    from evalwright.models.local.hf.loading import HubEncoder

    tokenizer = make_tokenizer("llama")
    tokenizer.add_special_tokens(
        {"additional_special_tokens": ["<think>", "</think>", "<tool>"]}
    )
    encoder = HubEncoder(tokenizer)
    tokens = encoder.encode("<think>so<tool></think>yes</s>", False)
    text = encoder.decode(tokens, True)
    assert text == "<think>so</think>yes"
    assert separate_reasoning(Response(text=text)).answer == "yes"


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2"])
def test_texts_prepared_together_are_encoded_as_one_by_one(
    kind: str, folders: dict[str, Path]
) -> None:
    model = TransformersModel(str(folders[kind]), device="cpu")
    encoder = engine_of(model).loaded.encoder
    assert encoder._batch is not None
    texts = [
        "",
        " a",
        "<s>Iron</s> melts\n\nat 1538 <|im_start|>",
        "東京 naïve  ",
        "x" * 5000,
    ]
    asked = [(text, special) for text in texts for special in (True, False)]
    expected = [encoder.encode(*each) for each in asked]
    encoder.prepare(asked)
    assert len(encoder._prepared) == len(asked)
    assert [encoder.encode(*each) for each in asked] == expected
    assert encoder.encode("not prepared", False) == list(
        encoder._encode_once("not prepared", False)
    )
    # One text that no tokenizer takes does not keep the others from being encoded.
    encoder.prepare([*asked, ("\ud800", False)])
    assert [encoder.encode(*each) for each in asked] == expected


@pytest.mark.parametrize(("kind", "texts"), [("llama", 1), ("strict", 1), ("qwen2", 0)])
def test_by_published_rules_a_tokenizer_adds_its_bos_to_a_chat_template(
    folders: dict[str, Path], kind: str, texts: int
) -> None:
    """Once, whether the template writes it or not; a tokenizer without one adds nothing."""
    import torch

    model = TransformersModel(str(folders[kind]), device="cpu", token_rules="published")
    [found] = answers(
        model, [LogLikelihood((Message("user", "Which river?"),), " the Rhine")]
    )
    loaded = engine_of(model).loaded
    tokenizer = loaded.encoder.tokenizer
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Which river?"}],
        tokenize=False,
        add_generation_prompt=True,
    )
    # White space at the prompt's end is the continuation's.
    before = tokenizer.encode(prompt.rstrip().removeprefix("<s>"))
    tokens = tokenizer.encode(prompt.removeprefix("<s>") + " the Rhine")
    assert tokens.count(0) == texts or kind == "qwen2"
    with torch.no_grad():
        values = torch.log_softmax(
            loaded.model(torch.tensor([tokens])).logits[0].double(), -1
        )
    wanted = sum(
        float(values[place - 1, tokens[place]])
        for place in range(len(before), len(tokens))
    )
    assert isinstance(found, Response)
    assert found.log_likelihood == pytest.approx(wanted, abs=1e-4)


def test_tokens_that_a_file_marks_as_special_are_no_text(
    folders: dict[str, Path],
) -> None:
    """As with transformers, where the tokenizer names no role for them too (Llama's headers)."""
    encoder = engine_of(
        open_model(f"hf/{folders['llama']}", {"device": "cpu"})
    ).loaded.encoder
    tokens = encoder.encode("a<|im_start|> river</s>", False)
    assert encoder.decode(tokens, False) == "a<|im_start|> river</s>"
    assert encoder.decode(tokens, True) == encoder.tokenizer.decode(
        tokens, skip_special_tokens=True
    )
    assert encoder.decode(tokens, True) == "a river"
