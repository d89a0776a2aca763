"""The datasets of HRET by their names, and a place for a user's own: `register_dataset`,
`load_datasets`, `BaseDataset`.
"""

from __future__ import annotations

from evalwright.compat.hret.datasets.base import (
    DATASET_REGISTRY,
    BaseDataset,
    load_datasets,
    register_dataset,
)
from evalwright.compat.hret.datasets.benchhub import BenchHubDataset
from evalwright.compat.hret.datasets.dataset_loader import GenericFileDataset
from evalwright.compat.hret.datasets.hub import (
    AIME2025Dataset,
    ClickDataset,
    HaeraeDataset,
    HRCDataset,
    HRM8KDataset,
    K2_EvalDataset,
    KBLDataset,
    KMMLUDataset,
    KorMedMCQADataset,
    KUDGEDataset,
)

__all__ = [
    "DATASET_REGISTRY",
    "AIME2025Dataset",
    "BaseDataset",
    "BenchHubDataset",
    "ClickDataset",
    "GenericFileDataset",
    "HRCDataset",
    "HRM8KDataset",
    "HaeraeDataset",
    "K2_EvalDataset",
    "KBLDataset",
    "KMMLUDataset",
    "KUDGEDataset",
    "KorMedMCQADataset",
    "load_datasets",
    "register_dataset",
]
