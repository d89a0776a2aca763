"""HRET's back ends of transformers: a model, a judge, a reward model."""

from __future__ import annotations

from typing import Any

from evalwright import Reward, Sample
from evalwright.compat.hret.models.base import MODEL_REGISTRY, BaseRewardModel
from evalwright.compat.hret.models.native_model import (
    GeneratingModel,
    JudgingModel,
    NativeModel,
)
from evalwright.compat.hret.row_ask import RowAsk, option_log_probs
from evalwright.compat.hret.row_samples import Rows


@MODEL_REGISTRY.register_own("huggingface")
class HuggingFaceModel(GeneratingModel):
    """A model of transformers, from the hub or a folder."""

    def _score_option(self, prompt: str, option: str) -> float:
        async def score_one(ask: RowAsk, sample: Sample) -> list[float]:
            return await option_log_probs(ask, self.role, prompt, [option])

        return float(self.ask_all(score_one, [{}])[0][0])


@MODEL_REGISTRY.register_own("huggingface_judge")
class HuggingFaceJudge(JudgingModel):
    """A judge of transformers, asked for feedback and a number from 1 to 5."""


@MODEL_REGISTRY.register_own("huggingface_reward")
class HuggingFaceReward(NativeModel, BaseRewardModel):
    """The mean log-likelihood of a reply's tokens under a language model."""

    role = "reward"

    def score_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The inputs with `reward`."""

        async def reward_one(ask: RowAsk, sample: Sample) -> dict[str, Any]:
            response = await ask(
                self.role, Reward(sample.input, str(sample.row.get("prediction") or ""))
            )
            return {**sample.row, "reward": response.values[0]}

        return self.ask_all(reward_one, inputs)
