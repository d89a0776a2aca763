"""Runs all checks in order: on each task, on tasks run together, and with a model or a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalwright.analysis.task_checks.acting import acts, check_acting
from evalwright.analysis.task_checks.extraction import check_extraction
from evalwright.analysis.task_checks.findings import Check, Finding
from evalwright.analysis.task_checks.gold import check_gold
from evalwright.analysis.task_checks.ignorance import check_ignorance, check_labels
from evalwright.analysis.task_checks.material import Material, read_material
from evalwright.analysis.task_checks.metadata import check_metadata
from evalwright.analysis.task_checks.prompts import check_prompts, check_window
from evalwright.analysis.task_checks.shots import check_shots
from evalwright.analysis.task_checks.texts import check_duplicates, check_texts
from evalwright.core.tasks import Task
from evalwright.models.model_interface import Model
from evalwright.runs.reader import Run

_CHECKS = (
    check_duplicates,
    check_texts,
    check_gold,
    check_shots,
    check_prompts,
    check_labels,
    check_metadata,
    check_acting,
)


@dataclass(frozen=True, slots=True)
class TaskExamination:
    """The findings under one title.

    Args:
        task: the task's name, or the name of a group of tasks.
        title: the title.
        findings: the findings.
    """

    task: str
    title: str
    findings: tuple[Finding, ...]

    @property
    def n_faults(self) -> int:
        """The number of findings that are faults."""
        return sum(not finding.ok for finding in self.findings)


def examine(
    tasks: Sequence[Task],
    *,
    name: str = "",
    model: Model | None = None,
    run: Run | None = None,
) -> Iterator[TaskExamination]:
    """Check each of the tasks, then answers that ignore the question over all of them.

    Args:
        tasks: the tasks.
        name: the name of the tasks as a group.
        model: the model whose context the prompts must fit; it gets no request.
        run: the run whose answers the tasks' scorers should be able to read.
    """
    materials = []
    for task in tasks:
        material = read_material(task)
        materials.append(material)
        yield TaskExamination(
            task.name,
            f"{task.name}, version {task.version}",
            tuple(_run_checks(material, model, run)),
        )
    answering = [material for material in materials if not acts(material.task)]
    if materials and not answering:
        return
    title = name or ", ".join(task.name for task in tasks)
    yield TaskExamination(
        title,
        f"{title}: answers that ignore the question",
        tuple(check_ignorance(answering)),
    )


def _run_checks(
    material: Material, model: Model | None, run: Run | None
) -> Iterator[Finding]:
    yield Check("samples").ok(
        f"{len(material.samples)} samples read, ids unique{_describe_spread(material)}"
    )
    for check in _CHECKS:
        # In a sandbox the reference solution stands for the gold answer.
        if check is not check_gold or not acts(material.task):
            yield from check(material)
    if model is not None:
        yield from check_window(material, model)
    if run is not None:
        yield from check_extraction(material, run)


def _describe_spread(material: Material) -> str:
    phrases = []
    for key in material.task.slices:
        values = {
            str(sample.metadata[key])
            for sample in material.samples
            if sample.metadata.get(key)
        }
        if len(values) > 1:
            phrases.append(f"{len(values)} values of {key}")
    clusters = {sample.cluster or sample.id for sample in material.samples}
    if len(clusters) < len(material.samples):
        phrases.append(f"{len(clusters)} clusters")
    return f" ({', '.join(phrases)})" if phrases else ""
