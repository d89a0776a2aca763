"""Task definitions of other frameworks, translated into Tasks."""
