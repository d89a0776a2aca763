"""A transformers model that sees images (a tiny LLaVA with random weights): its answers are
those that transformers gives by itself.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

from evalwright.core.errors import Failure
from evalwright.core.images import Image
from evalwright.core.requests import Generate, LogLikelihood, Message, images_of
from evalwright.core.responses import Response
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import answers, engine_of
from support.tiny_models import make_vision_model

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
Pictures = pytest.importorskip("PIL.Image")


def picture(color: str, kind: str = "PNG", size: tuple[int, int] = (40, 30)) -> Image:
    data = BytesIO()
    made = Pictures.new("RGB", size, color)
    made.putpixel((3, 4), (1, 2, 3))
    made.save(data, kind)
    return Image.read(data.getvalue(), f"{color}.{kind.lower()}")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TransformersModel:
    torch.set_num_threads(1)
    folder = make_vision_model(tmp_path_factory.mktemp("vision") / "llava")
    return TransformersModel(str(folder), device="cpu")


def seen(*parts: str | Image, **how: Any) -> Generate:
    return Generate(
        (Message("system", "Look."), Message("user", parts)), max_tokens=8, **how
    )


def by_transformers(model: TransformersModel, request: Generate, **how: Any) -> str:
    """What processor and model give without anything of ours."""
    from transformers import AutoModelForImageTextToText, AutoProcessor

    folder = model._source.where
    processor = AutoProcessor.from_pretrained(folder)
    plain = AutoModelForImageTextToText.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    turns = [
        {"role": turn.role, "content": [{"type": "image"} if isinstance(p, Image) else {"type": "text", "text": p} for p in turn.parts]}
        for turn in request.prompt
        if isinstance(turn, Message)
    ]  # fmt: skip
    text = processor.apply_chat_template(turns, add_generation_prompt=True)
    pictures = [
        Pictures.open(BytesIO(image.data)).convert("RGB")
        for image in images_of(request)
    ]
    inputs = processor(
        text=[text],
        images=pictures or None,
        return_tensors="pt",
        add_special_tokens=False,
    )
    with torch.inference_mode():
        found = plain.generate(**inputs, max_new_tokens=8, do_sample=False, **how)[
            0, inputs["input_ids"].shape[1] :
        ].tolist()
    ends = engine_of(model).loaded.end_tokens
    cut = next(
        (place for place, token in enumerate(found) if token in ends), len(found)
    )
    return str(engine_of(model).loaded.encoder.decode(found[:cut], True))


def test_answers_are_those_of_transformers(model: TransformersModel) -> None:
    assert {"images", "chat"} <= model.carries | model.abilities
    red = picture("red")
    blue = picture("blue", "JPEG")
    requests = [
        seen(red, "What is this?"),
        seen(blue, "What is this?"),
        seen("Compare ", red, " and ", blue, "."),
        seen("No picture at all."),
        seen(red, "What is this?", num_beams=3),
    ]
    found = answers(model, requests)
    for request, answer in zip(requests, found, strict=True):
        beams = {"num_beams": request.num_beams} if request.num_beams > 1 else {}
        assert isinstance(answer, Response), answer
        assert answer.text == by_transformers(model, request, **beams)
    texts = [answer.text for answer in found]
    assert texts[0] != texts[1], "an image that changes no answer would show nothing"
    # Four places stand for each image among the tokens that are read.
    assert found[2].usage.input_tokens > found[0].usage.input_tokens + 4


def test_log_probabilities_and_draws_with_images(model: TransformersModel) -> None:
    [found] = answers(model, [seen(picture("red"), "What is this?", top_logprobs=2)])
    assert "".join(token.text for token in found.tokens) == found.text
    assert all(
        token.log_prob <= 0 and len(token.alternatives) == 2 for token in found.tokens
    )
    draws = [
        seen(picture("red"), "What?", temperature=2.0, seed=1, draw=n) for n in range(3)
    ]
    first = answers(model, draws)
    again = answers(model, draws)
    assert [each.text for each in first] == [each.text for each in again]
    assert len({each.text for each in first}) > 1


def test_text_alone_is_scored_and_written_as_ever(model: TransformersModel) -> None:
    loaded = engine_of(model).loaded
    [found] = answers(model, [LogLikelihood("The river", " rises")])
    context, whole = (
        loaded.encoder.encode(text, True) for text in ("The river", "The river rises")
    )
    with torch.inference_mode():
        logs = torch.log_softmax(
            loaded.model(input_ids=torch.tensor([whole])).logits[0].float(), dim=-1
        )
    by_hand = sum(
        float(logs[place - 1, whole[place]])
        for place in range(len(context), len(whole))
    )
    assert found.log_likelihood == pytest.approx(by_hand, abs=1e-3)


def test_an_image_that_cannot_be_decoded_fails_alone(model: TransformersModel) -> None:
    good = picture("red")
    cut = Image.read(good.data[: len(good.data) - 30], "cut.png")
    bad, fine = answers(model, [seen(cut, "What?"), seen(good, "What?")])
    assert isinstance(bad, Failure) and not bad.retryable
    assert (
        bad.message.startswith("The image 'cut.png' cannot be decoded: ")
        and "\n" not in bad.message
    )
    assert isinstance(fine, Response)


def test_a_prompt_of_too_many_images_does_not_fit(model: TransformersModel) -> None:
    [found] = answers(model, [seen(*[picture("red")] * 70, "What?")])
    assert (
        isinstance(found, Failure)
        and "tokens and the model's context has 256" in found.message
    )


def test_likelihoods_with_images_are_refused(model: TransformersModel) -> None:
    prompt = (Message("user", (picture("red"), "x")),)
    why = model.refuses(LogLikelihood(prompt, "y"))
    assert why is not None and "takes images only in prompts to generate" in why
