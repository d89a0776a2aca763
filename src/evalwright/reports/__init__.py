"""Reports on runs, boards and comparisons: terminal text, Markdown, LaTeX, PDF and HTML.

Everything in a report except its own wording is untrusted: names, ids, messages and dates may
come from somebody else's run folder. `text.inert` makes such text harmless in one place; each
format then escapes it in its own way.
"""
