"""What runs the tools that models call.

toolbox.py          the tools of one conversation: their definitions, and `call`, which is bounded
function_tool.py    `@tool`: a typed Python function as a tool
argument_types.py   from type annotations to a JSON schema, and arguments checked against it
docstrings.py       what a docstring says of a function and of its parameters
python_files.py     the tools of a Python file
scripted_results.py definitions alone, with results that a data set lists
mcp_settings.py     what a task says of an MCP server
mcp_tools.py        the tools of such a server
mcp_process.py      a server that is a process: its messages, bounded
mcp_http.py         a server at an address: its replies, bounded
shared_sources.py   servers that all samples of a run share
task_tools.py       the tools that a task offers
model_texts.py      results and errors as a model reads them
"""
