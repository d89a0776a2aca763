"""A judge by words alone: copies, evidence of fifteen kinds beside the sentences a clause is about, and fixed weights."""
