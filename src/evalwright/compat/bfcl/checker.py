"""BFCL's verdict on a model's calls, by the rules of its `ast_checker`, faults included.

Calls are compared with possible answers: by parameter, the list of values that are right, with ""
for one that may be left out. `docs/tool-calls.md` says where these rules are wrong; the corrected
scoring does not use them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evalwright.compat.bfcl.source_values import Unreadable, read_java, read_javascript

PYTHON = "python"
JAVA = "java"
JAVASCRIPT = "javascript"

TYPES: Mapping[str, Mapping[str, type]] = {
    PYTHON: {
        "any": str,
        "array": list,
        "boolean": bool,
        "dict": dict,
        "float": float,
        "integer": int,
        "string": str,
        "tuple": list,
    },
    JAVA: {
        "Array": list,
        "ArrayList": list,
        "HashMap": dict,
        "Hashtable": dict,
        "Queue": list,
        "Set": set,
        "Stack": list,
        "String": str,
        "any": str,
        "boolean": bool,
        "byte": int,
        "char": str,
        "double": float,
        "float": float,
        "integer": int,
        "long": int,
        "short": int,
    },
    JAVASCRIPT: {
        "Bigint": int,
        "Boolean": bool,
        "String": str,
        "any": str,
        "array": list,
        "dict": dict,
        "float": float,
        "integer": int,
    },
}
"""By language, the type of Python that stands for a type of a function's description."""
_LISTS = {
    PYTHON: ("array", "tuple"),
    JAVA: ("Array", "ArrayList", "array"),
    JAVASCRIPT: ("Array", "ArrayList", "array"),
}
_READERS = {JAVA: read_java, JAVASCRIPT: read_javascript}
_IGNORED = re.compile(r"[ ,./\-_*^]")

Call = tuple[str, Mapping[str, Any]]
"""A call's name, as the model wrote it, and its arguments."""


class Verdict(NamedTuple):
    """What BFCL says of calls.

    Attributes:
        error: BFCL's own name of the error; "" if the calls are right.
        sentence: what is wrong.
    """

    error: str = ""
    sentence: str = ""


RIGHT = Verdict()


def offered_name(name: str) -> str:
    """Return the name by which a function is offered to a model: providers take no dots."""
    return name.replace(".", "_")


def check_calls(
    functions: Sequence[Mapping[str, Any]],
    calls: Sequence[Call],
    possible: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]],
    language: str,
    category: str,
) -> Verdict:
    """Compare calls with the possible answers, as `ast_checker` does.

    Args:
        functions: the functions' descriptions, as in BFCL's file.
        calls: the model's calls.
        possible: the possible answers, as in BFCL's file.
        language: PYTHON, JAVA or JAVASCRIPT.
        category: BFCL's name of the category.

    Raises:
        Unreadable: BFCL's checker raises an error of Python in place of a verdict.
    """
    if "parallel" in category:
        return _check_parallel(functions, calls, possible, language)
    if "multiple" in category:
        if len(calls) != len(possible):
            return Verdict(
                "multiple_function_checker:wrong_count", _count(calls, possible)
            )
        function = _description(functions, next(iter(possible[0])))
        return _check_call(function, calls[0], possible[0], language)
    if len(calls) != 1:
        return Verdict("simple_function_checker:wrong_count", _count(calls, possible))
    return _check_call(functions[0], calls[0], possible[0], language)


def _count(calls: Sequence[Call], possible: Sequence[Any]) -> str:
    return f"{len(calls)} calls where {len(possible)} are expected"


def _description(
    functions: Sequence[Mapping[str, Any]], name: str
) -> Mapping[str, Any]:
    for function in functions:
        if function["name"] == name:
            return function
    raise Unreadable(f"no function {name} is described")


def _check_parallel(
    functions: Sequence[Mapping[str, Any]],
    calls: Sequence[Call],
    possible: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]],
    language: str,
) -> Verdict:
    """Give each possible answer the first call that fits and is left."""
    if len(calls) != len(possible):
        return Verdict(
            "parallel_function_checker_no_order:wrong_count", _count(calls, possible)
        )
    unmatched_calls = list(calls)
    for answer in possible:
        function = _description(functions, next(iter(answer)))
        for index, call in enumerate(unmatched_calls):
            if _check_call(function, call, answer, language) == RIGHT:
                del unmatched_calls[index]
                break
        else:
            return Verdict(
                "parallel_function_checker_no_order:cannot_find_match",
                f"no call is the expected one of {next(iter(answer))}",
            )
    return RIGHT


def _check_call(
    function: Mapping[str, Any],
    call: Call,
    answer: Mapping[str, Mapping[str, Sequence[Any]]],
    language: str,
) -> Verdict:
    possible = next(iter(answer.values()))
    properties = function["parameters"]["properties"]
    name, arguments = call
    if name != offered_name(function["name"]):
        return Verdict(
            "simple_function_checker:wrong_func_name", f"{name} is another function"
        )
    for parameter in function["parameters"]["required"]:
        if parameter not in arguments:
            return Verdict(
                "simple_function_checker:missing_required", f"'{parameter}' is missing"
            )
    for parameter, argument in arguments.items():
        if parameter not in properties or parameter not in possible:
            return Verdict(
                "simple_function_checker:unexpected_param",
                f"'{parameter}' is not expected",
            )
        fault = _check_argument(
            argument, possible[parameter], properties[parameter], language
        )
        if fault:
            return Verdict(fault, f"'{parameter}' is {argument!r:.80}")
    for parameter, values in possible.items():
        if parameter not in arguments and "" not in values:
            return Verdict(
                "simple_function_checker:missing_optional", f"'{parameter}' is missing"
            )
    return RIGHT


def _check_argument(
    argument: Any, possible: Sequence[Any], schema: Mapping[str, Any], language: str
) -> str:
    """Return BFCL's name of what is wrong with an argument, "" if nothing is."""
    type_name = schema["type"]
    types = TYPES[language]
    if type_name not in types:
        raise Unreadable(f"the type {type_name} is not known")
    element_type = None
    element_type_name = ""
    if type_name in _LISTS[language]:
        element_type_name = schema["items"]["type"]
        if element_type_name not in types:
            raise Unreadable(f"the type {element_type_name} is not known")
        element_type = types[element_type_name]
    if language != PYTHON:
        if not isinstance(argument, str):
            return "type_error:java" if language == JAVA else "type_error:js"
        argument = _READERS[language](argument, type_name, element_type_name)
    elif type_name == "float" and type(argument) is int:
        try:
            argument = float(argument)
        except OverflowError:
            raise Unreadable("the number is beyond floats") from None
    wrong_type, is_variable = _check_type(
        argument, possible, types[type_name], element_type
    )
    if wrong_type:
        return wrong_type
    if not is_variable:
        if types[type_name] is dict:
            return _check_mapping(argument, possible)
        if types[type_name] is list and element_type is dict:
            return _check_mappings(argument, possible)
        if types[type_name] is str:
            texts = [text for text in possible if isinstance(text, str)]
            standard_texts = map(standardise, texts)
            return (
                "" if standardise(argument) in standard_texts else "value_error:string"
            )
        if types[type_name] is list:
            return _check_list(argument, possible)
    return "" if argument in possible else "value_error:others"


def _check_type(
    argument: Any,
    possible: Sequence[Any],
    expected_type: type,
    element_type: type | None,
) -> tuple[str, bool]:
    """Compare types, one level deep.

    Returns:
        BFCL's name of the error, and whether the value is taken for the name of a variable.
    """
    possible_type = next((type(value) for value in possible if value != ""), None)
    is_variable = possible_type is not None and possible_type is not expected_type
    if type(argument) is expected_type:
        if element_type is None:
            return "", is_variable
        if any(_has_types_of(argument, values, element_type) for values in possible):
            return "", is_variable
        # BFCL then goes on to the next test, and its verdict stays "valid: False" only if that
        # one fails too.
        kind_of_error = "type_error:nested"
    else:
        kind_of_error = "type_error:simple"
    if possible_type is not None and type(argument) is possible_type:
        if kind_of_error == "type_error:nested":
            return kind_of_error, True
        return "", True
    return "type_error:simple", False


def _has_types_of(argument: Any, values: Any, element_type: type) -> bool:
    """Return whether all elements of an argument have the type of a possible list's elements."""
    return not isinstance(values, list) or all(
        not _check_type(element, values, element_type, None)[0] for element in argument
    )


def standardise(text: str) -> str:
    """Return a text without case, spaces and some punctuation, as BFCL compares it."""
    return _IGNORED.sub("", text).lower().replace("'", '"')


def _standardised(scalar: Any) -> Any:
    return standardise(scalar) if isinstance(scalar, str) else scalar


def _check_list(argument: Sequence[Any], possible: Sequence[Any]) -> str:
    standardised = [_standardised(element) for element in argument]
    accepted = [[_standardised(element) for element in values] for values in possible]
    return "" if standardised in accepted else "value_error:list/tuple"


def _check_mapping(argument: Mapping[str, Any], possible: Sequence[Any]) -> str:
    error = "dict_checker:unclear"
    for answer in possible:
        if answer == "":
            continue
        error = _fault_of_mapping(argument, answer)
        if not error:
            return ""
    return error


def _fault_of_mapping(
    argument: Mapping[str, Any], answer: Mapping[str, Sequence[Any]]
) -> str:
    for key, value in argument.items():
        if key not in answer:
            return "value_error:dict_key"
        if _standardised(value) not in [
            _standardised(possible) for possible in answer[key]
        ]:
            return "value_error:dict_value"
    for key, values in answer.items():
        if key not in argument and "" not in values:
            return "value_error:dict_key"
    return ""


def _check_mappings(argument: Sequence[Any], possible: Sequence[Any]) -> str:
    error = "list_dict_checker:unclear"
    for answers in possible:
        if len(argument) != len(answers):
            error = "value_error:list_dict_count"
            continue
        errors = [
            _check_mapping(element, [answer])
            for element, answer in zip(argument, answers, strict=True)
        ]
        error = next((fault for fault in errors if fault), "")
        if not error:
            return ""
    return error
