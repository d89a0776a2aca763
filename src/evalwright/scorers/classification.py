"""Two classes with a probability: is the more probable one right, and how probable was it?"""

from __future__ import annotations

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score


def classification(sample: Sample, answer: Answer) -> Score:
    """1.0 where the chosen class is the right one, else 0.0; labels "correct" and "incorrect".

    parts: "gold" and "predicted" (indices of the sample's choices), and "probability", that of the last class, where the model
    gives one; metrics over classes and `auroc` read them. Raises ScoringError where the sample has no one right choice or
    the answer chose none.
    """
    if len(sample.gold) != 1:
        raise ScoringError(
            f"The sample '{sample.id}' does not have exactly one right class among its choices."
        )
    if answer.choice is None:
        raise ScoringError(
            "The answer chose no class; use the scorer 'classification' with the mode 'classify'."
        )
    parts = {"gold": float(sample.gold[0]), "predicted": float(answer.choice)}
    values = answer.responses[-1].values if answer.responses else ()
    if len(values) == len(sample.choices):
        parts["probability"] = values[-1]
    right = answer.choice == sample.gold[0]
    said = f"{sample.choices[answer.choice]}"
    if "probability" in parts:
        said += f"; P({sample.choices[-1]}) = {parts['probability']:.3f}"
    return Score(float(right), "correct" if right else "incorrect", said, parts)
