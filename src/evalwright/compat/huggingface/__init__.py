"""Exports results in the forms that the Hugging Face Hub reads."""
