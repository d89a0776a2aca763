"""How an answer is read."""
