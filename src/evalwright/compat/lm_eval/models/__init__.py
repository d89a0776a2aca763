"""Model classes written for lm-evaluation-harness."""
