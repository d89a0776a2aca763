"""The HaeRae Evaluation Toolkit (HRET): its calls, run by this engine."""
