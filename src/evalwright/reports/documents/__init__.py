"""Documents for each kind of result: headings, tables and sentences from its numbers."""
