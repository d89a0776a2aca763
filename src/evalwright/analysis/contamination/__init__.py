"""Whether a model may have seen the questions: dates, rewrites, overlap with a corpus, versions."""
