"""Documents for each kind of result, with headings, tables and sentences built from its numbers."""
