"""Evidence that a model may have seen the questions: dates, rewrites, corpus overlap, versions."""
