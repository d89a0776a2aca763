"""What a model class written after lm-evaluation-harness's New Model Guide imports: change the import, run it as `lm/<name>`.

    from evalwright.compat.lm_eval import LM, Instance, register_model

See docs/new-model-guide.md.
"""

from evalwright.compat.lm_eval.models.interface import LM, CacheHook, Instance, TemplateLM, register_model

__all__ = ["LM", "CacheHook", "Instance", "TemplateLM", "register_model"]
