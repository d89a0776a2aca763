"""Results in the forms that the Hugging Face hub reads."""
