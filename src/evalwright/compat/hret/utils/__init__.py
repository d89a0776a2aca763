"""What HRET keeps in `llm_eval.utils`: answers and prompts of judges, the language penalty."""
