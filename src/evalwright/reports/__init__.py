"""What people look at: runs, boards and comparisons as terminal text, Markdown and one
self-contained HTML page.

Everything that a report shows beside its own words is untrusted: names, ids, messages and dates may
come from somebody else's run folder. `text.inert` makes such text harmless in one place; each
format then escapes it in its own way.
"""
