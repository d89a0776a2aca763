"""Chat templates with tools, one for each family's way to write calls, in a few lines each."""

from __future__ import annotations

_OPENING = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
_OFFERED = (
    "{% if tools %}{{ '<|im_start|>system\nTools:' }}"
    "{% for tool in tools %}{{ '\n' + tool.function | tojson }}{% endfor %}"
    "{{ '<|im_end|>\n' }}{% endif %}"
)
_CALLS_OF = "{% for call in message.tool_calls %}{% set f = call.function %}"


def _template(calls: str) -> str:
    return (
        _OFFERED
        + "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}"
        + "{{ message.content }}{% if message.tool_calls %}"
        + calls
        + "{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
        + _OPENING
    )


HERMES = _template(
    _CALLS_OF
    + "{{ '<tool_call>\n' + {'name': f.name, 'arguments': f.arguments} | tojson"
    + " + '\n</tool_call>' }}{% endfor %}"
)
QWEN_CODER = _template(
    _CALLS_OF
    + "{{ '<tool_call>\n<function=' + f.name + '>\n' }}"
    + "{% for key, text in f.arguments.items() %}"
    + "{{ '<parameter=' + key + '>\n' + text + '\n</parameter>\n' }}{% endfor %}"
    + "{{ '</function>\n</tool_call>' }}{% endfor %}"
)
LLAMA = _template(
    _CALLS_OF
    + "{{ '{\"name\": \"' + f.name + '\", \"parameters\": ' + f.arguments | tojson + '}' }}"
    + "{% endfor %}"
)
MISTRAL = _template(
    "{{ '[TOOL_CALLS] [' }}"
    + _CALLS_OF
    + "{% if call.id | length != 9 %}{{ raise_exception('an id has 9 signs') }}{% endif %}"
    + "{{ {'name': f.name, 'arguments': f.arguments, 'id': call.id} | tojson }}"
    + "{{ '' if loop.last else ', ' }}{% endfor %}{{ ']' }}"
)
MISTRAL_ARGUMENTS = _template(
    _CALLS_OF
    + "{{ '[TOOL_CALLS]' + f.name + '[ARGS]' + f.arguments | tojson }}{% endfor %}"
)
UNKNOWN = _template(
    _CALLS_OF + "{{ '(' + f.name + ' <- ' + f.arguments | tojson + ')' }}{% endfor %}"
)
