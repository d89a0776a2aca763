"""What an expression states as an answer, and whether two answers state the same.

An answer is a value, several values, a tuple, intervals, a matrix or an equation.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from evalwright.scorers.text.expressions import (
    Tree,
    Unreadable,
    equal_numbers,
    evaluate,
    names_in,
    same_value,
    sample_points,
)

MAX_VALUES = 24
"""Most members of a set or tuple that are compared."""
INFINITY: Tree = ("infinity",)
LOWEST: Tree = ("negative", INFINITY)
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}


class Values(NamedTuple):
    """One or several values.

    `name` is the variable that has them; `ordered` is None if the order may or may not matter.
    """

    trees: tuple[Tree, ...]
    name: Tree | None = None
    ordered: bool | None = None
    brackets: str = ""


class Intervals(NamedTuple):
    """A union of intervals; each part has its two ends and whether they belong to it."""

    parts: tuple[tuple[Tree, Tree, bool, bool], ...]


class Assigned(NamedTuple):
    """The values of several variables."""

    values: tuple[tuple[str, Tree], ...]


class Matrix(NamedTuple):
    """Rows of expressions."""

    rows: tuple[tuple[Tree, ...], ...]


class Equation(NamedTuple):
    """An equation that does not give the value of one variable; `sign` is "=" or "!="."""

    left: Tree
    right: Tree
    sign: str = "="


Shape = Values | Intervals | Assigned | Matrix | Equation


def shape_of(tree: Tree) -> Shape:
    """Classify an expression as a kind of answer.

    Raises:
        Unreadable: it is not an answer.
    """
    if _has_sign(tree):
        return _shape_of_both_signs(tree)
    operation = tree[0]
    if operation == "group":
        return shape_of(tree[1])
    if operation == "several":
        return _shape_of_several(tree[1])
    if operation == "relation":
        return _shape_of_relation(tree[1], tree[2])
    if operation == "list":
        return _shape_of_list(tree)
    if operation == "union":
        left = shape_of(tree[1])
        right = shape_of(tree[2])
        sides = [as_intervals(left), as_intervals(right)]
        if None not in sides:
            return Intervals(
                tuple(
                    interval
                    for side in sides
                    if side is not None
                    for interval in side.parts
                )
            )
        if isinstance(left, Values) and isinstance(right, Values):
            return Values((*left.trees, *right.trees), ordered=False)
        raise Unreadable
    if (
        operation == "*"
        and tree[1][0] == "name"
        and tree[2][0] == "list"
        and len(tree[2][3]) > 1
    ):
        return shape_of(tree[2])  # a point with its name, "A(2; 0)"
    return Values((tree,))


def _has_sign(tree: Any) -> bool:
    if isinstance(tree, tuple):
        return bool(tree) and (
            tree[0] == "plus or minus" or any(map(_has_sign, tree[1:]))
        )
    return isinstance(tree, list) and any(map(_has_sign, tree))


def _with_sign(tree: Any, sign: str) -> Any:
    if isinstance(tree, tuple):
        head = sign if tree[0] == "plus or minus" else tree[0]
        return (head, *(_with_sign(branch, sign) for branch in tree[1:]))
    return (
        [_with_sign(branch, sign) for branch in tree]
        if isinstance(tree, list)
        else tree
    )


def _shape_of_both_signs(tree: Tree) -> Shape:
    """Return the two values of an expression with a plus-minus sign."""
    plus, minus = (shape_of(_with_sign(tree, sign)) for sign in "+-")
    if isinstance(plus, Values) and isinstance(minus, Values):
        return Values(_distinct((*plus.trees, *minus.trees)), plus.name, ordered=False)
    raise Unreadable


def _distinct(trees: Sequence[Tree]) -> tuple[Tree, ...]:
    distinct: list[Tree] = []
    for tree in trees[:MAX_VALUES]:
        if not any(_is_same_value(tree, earlier) for earlier in distinct):
            distinct.append(tree)
    return tuple(distinct)


def _is_name(tree: Tree) -> bool:
    """Return whether a side of an equation is a name: x, f(x), y', P(A)."""
    if tree[0] == "name":
        return True
    if tree[0] in ("union", "intersection"):
        return _is_name(tree[1]) and _is_name(tree[2])
    if tree[0] == "/":
        return all(
            factor[0] == "*" and factor[1] == ("name", "d") for factor in tree[1:]
        )
    return (
        tree[0] == "*"
        and tree[1][0] == "name"
        and (tree[1][1].rstrip("'") in "fghFGP" or tree[2][0] == "name")
    )


def _shape_of_relation(signs: Sequence[str], sides: Sequence[Tree]) -> Shape:
    if "=>" in signs:
        last = len(signs) - 1 - list(reversed(signs)).index("=>")
        if last == len(signs) - 1:
            return shape_of(sides[-1])
        return _shape_of_relation(signs[last + 1 :], sides[last + 1 :])
    if "~" in signs:
        first = list(signs).index("~")
        if first == 0 and (_is_name(sides[0]) or not names_in(sides[1])):
            return (
                shape_of(sides[1])
                if names_in(sides[0]) or len(signs) > 1
                else shape_of(sides[0])
            )
        return (
            _shape_of_relation(signs[:first], sides[: first + 1])
            if first
            else shape_of(sides[0])
        )
    if "in" in signs:
        return shape_of(sides[-1])
    if all(sign == "=" for sign in signs):
        return _shape_of_equation(sides)
    if all(sign == "!=" for sign in signs) and len(sides) == 2:
        return Equation(sides[0], sides[1], "!=")
    return _shape_of_inequality(signs, sides)


def _shape_of_equation(sides: Sequence[Tree]) -> Shape:
    first = sides[0]
    last = sides[-1]
    if _is_name(first) or (first[0] == "list" and all(map(_is_name, first[3]))):
        shape = shape_of(last)
        if isinstance(shape, Values) and len(shape.trees) == 1 and _is_name(first):
            return shape._replace(name=first)
        return shape
    if _is_name(last) and len(sides) == 2 and not names_in(first):
        return Values((first,), last)
    if (
        len(sides) == 2
        and (names_in(first) or names_in(last))
        and not _is_same_value(first, last)
    ):
        return Equation(first, last)
    return shape_of(last)


def _shape_of_inequality(signs: Sequence[str], sides: Sequence[Tree]) -> Shape:
    if len(sides) == 2:
        low_first = [(signs[0], sides[0], sides[1])]
    elif len(sides) == 3:
        low_first = [(signs[0], sides[0], sides[1]), (signs[1], sides[1], sides[2])]
    else:
        raise Unreadable
    low = LOWEST
    high = INFINITY
    has_low = False
    has_high = False
    for sign, left, right in low_first:
        if _is_variable(right) and not _is_variable(left):
            sign, left, right = _TURNED.get(sign, sign), right, left
        if not _is_variable(left) or sign not in ("<", ">", "<=", ">="):
            raise Unreadable
        if sign[0] == "<":
            high = right
            has_high = sign == "<="
        else:
            low = right
            has_low = sign == ">="
    return Intervals(((low, high, has_low, has_high),))


def _is_variable(tree: Tree) -> bool:
    return tree[0] == "name" or (tree[0] == "*" and _is_name(tree))


def _shape_of_several(trees: Sequence[Tree]) -> Shape:
    if len(trees) > MAX_VALUES:
        raise Unreadable
    relations = [tree for tree in trees if tree[0] == "relation"]
    if not relations:
        shapes = [shape_of(tree) for tree in trees]
        if all(
            isinstance(shape, Values) and len(shape.trees) == 1 and not shape.brackets
            for shape in shapes
        ):
            return Values(tuple(trees), ordered=None)
        intervals = [as_intervals(shape) for shape in shapes]
        if None not in intervals:
            return Intervals(
                tuple(
                    tree
                    for shape in intervals
                    if shape is not None
                    for tree in shape.parts
                )
            )
        return Values(tuple(trees), ordered=None)
    shapes = [shape_of(interval) for interval in trees]
    if all(isinstance(shape, Intervals) for shape in shapes):
        return _combine_intervals(
            [shape for shape in shapes if isinstance(shape, Intervals)]
        )
    shapes = [
        shape
        for tree, shape in zip(trees, shapes, strict=True)
        if not _is_condition(tree)
    ] or shapes
    shapes = [shape for shape in shapes if not isinstance(shape, Equation)] or shapes
    valued = [shape for shape in shapes if isinstance(shape, Values)]
    if not valued:
        return shapes[-1]
    if len(shapes) == 1:
        return shapes[0]
    names = [shape.name for shape in valued if shape.name is not None]
    if names and all(tree[0] == "relation" for tree in trees):
        valued = [
            shape for shape in valued if shape.name is not None
        ]  # "h² = 169, h = 13"
    if not names:
        return Values(tuple(tree for shape in valued for tree in shape.trees))
    different = list(
        dict.fromkeys(
            str(name[1]) if name[0] == "name" else str(name) for name in names
        )
    )
    if len(different) == 1:
        shapes_of_name = [
            shape for shape in valued if shape.name is None or shape.name == names[0]
        ]
        worked_out = [tree for shape in shapes_of_name for tree in shape.trees]
        return Values(_distinct(worked_out), names[0], ordered=False)
    pairs = [
        (
            str(shape.name[1]) if shape.name[0] == "name" else str(shape.name),
            shape.trees[0],
        )
        for shape in valued
        if shape.name is not None
    ]
    return Assigned(tuple(dict(pairs).items()))


def _is_condition(tree: Tree) -> bool:
    """Return whether a relation only restricts a letter: "x ≠ 0", "C ∈ ℝ"."""
    if tree[0] != "relation":
        return False
    return bool(tree[1] == ["!="] or (tree[1] == ["in"] and tree[2][1][0] == "name"))


def _combine_intervals(shapes: Sequence[Intervals]) -> Shape:
    """Join inequalities: the overlap of a lower and an upper bound, else their union."""
    intervals = [interval for shape in shapes for interval in shape.parts]
    if len(intervals) == 2:
        lows = [interval for interval in intervals if interval[0] != LOWEST]
        highs = [interval for interval in intervals if interval[1] != INFINITY]
        if len(lows) == len(highs) == 1 and lows[0] is not highs[0]:
            low = lows[0]
            high = highs[0]
            upper_end = real(high[1])
            lower_end = real(low[0])
            if (
                upper_end is not None
                and lower_end is not None
                and lower_end < upper_end
            ):
                return Intervals(((low[0], high[1], low[2], high[3]),))
    return Intervals(tuple(intervals))


def _shape_of_list(tree: Tree) -> Shape:
    _, opening, closing, elements = tree
    if len(elements) > MAX_VALUES:
        raise Unreadable
    if (
        elements
        and all(element[0] == "list" for element in elements)
        and opening in "[("
    ):
        rows = tuple(tuple(element[3]) for element in elements)
        if len({len(row) for row in rows}) == 1:
            return Matrix(rows)
    if (
        opening == "{"
        and len(elements) > 1
        and any(element[0] == "relation" for element in elements)
    ):
        return _shape_of_several(elements)
    if elements and all(element[0] == "relation" for element in elements):
        return _shape_of_several(elements)
    if opening == "{":
        if len(elements) == 1 and isinstance(shape := shape_of(elements[0]), Intervals):
            return shape
        return Values(_distinct(elements), ordered=False, brackets="{}")
    return Values(tuple(elements), ordered=True, brackets=opening + closing)


def as_intervals(shape: Shape) -> Intervals | None:
    """Read a pair in brackets as an interval; None if it is not one."""
    if isinstance(shape, Intervals):
        return shape
    if (
        isinstance(shape, Values)
        and len(shape.trees) == 2
        and shape.brackets
        and shape.brackets[0] in "([]"
    ):
        low, high = shape.trees
        return Intervals(
            ((low, high, shape.brackets[0] == "[", shape.brackets[-1] == "]"),)
        )
    return None


# -- comparison ------------------------------------------------------------------------


def _is_same_value(left: Tree, two: Tree) -> bool:
    try:
        return same_value(left, two)
    except Unreadable:
        return left == two


def real(tree: Tree) -> float | None:
    """Return the real value of an expression without variables; None for others."""
    if tree in (INFINITY, LOWEST):
        return float("inf") if tree == INFINITY else float("-inf")
    try:
        number = evaluate(tree, {})
    except Unreadable:
        return None
    if isinstance(number, Fraction):
        return (
            float(number)
            if number.numerator.bit_length() - number.denominator.bit_length() < 1000
            else None
        )
    return number.real if abs(number.imag) <= 1e-9 * max(1.0, abs(number)) else None


def same_shape(target: Shape, answer: Shape) -> bool:
    """Return whether two answers state the same."""
    if isinstance(target, Values) and isinstance(answer, Values):
        return _same_values(target, answer)
    if isinstance(target, Intervals) or isinstance(answer, Intervals):
        return _same_intervals(as_intervals(target), as_intervals(answer))
    if isinstance(target, Matrix) or isinstance(answer, Matrix):
        return _same_matrices(target, answer)
    if isinstance(target, Equation) or isinstance(answer, Equation):
        return _same_equations(target, answer)
    if isinstance(target, Assigned) and isinstance(answer, Assigned):
        left = dict(target.values)
        right = dict(answer.values)
        return set(left) <= set(right) and all(
            _is_same_value(left[name], right[name]) for name in left
        )
    if isinstance(target, Assigned) and isinstance(answer, Values):
        return _same_assigned(target, answer)
    if isinstance(target, Values) and isinstance(answer, Assigned):
        return _same_assigned(answer, target)
    return False


def _same_values(target: Values, answer: Values) -> bool:
    if len(target.trees) == len(answer.trees) == 1:
        if _without_percent(target.trees[0], answer.trees[0]) or _is_same_value(
            target.trees[0], answer.trees[0]
        ):
            return True
        target_list, two = (
            shape.trees[0] if shape.trees[0][0] == "list" else None
            for shape in (target, answer)
        )
        return (
            target_list is not None
            and two is not None
            and same_shape(shape_of(target_list), shape_of(two))
        )
    if len(target.trees) != len(answer.trees):
        return False
    if (
        target.ordered
        and answer.ordered
        and len(target.trees) == 2
        and target.brackets != answer.brackets
    ):
        return False
    if "{}" in (target.brackets, answer.brackets) and (
        target.ordered or answer.ordered
    ):
        return False  # a set is neither a pair nor an interval
    if target.ordered and answer.ordered is not False:
        return all(map(_same_part, target.trees, answer.trees))
    if answer.ordered and target.ordered:
        return all(map(_same_part, target.trees, answer.trees))
    left = list(answer.trees)
    for tree in target.trees:
        match_index = next(
            (
                index
                for index, answer_tree in enumerate(left)
                if _same_part(tree, answer_tree)
            ),
            None,
        )
        if match_index is None:
            return False
        del left[match_index]
    return True


def _without_percent(left: Tree, two: Tree) -> bool:
    """Return whether one value is the other with a percent sign."""
    if (left[0] == "percent") is (two[0] == "percent"):
        return False
    return _is_same_value(
        *(tree[1] if tree[0] == "percent" else tree for tree in (left, two))
    )


def _same_part(left: Tree, two: Tree) -> bool:
    if left[0] == "list" or two[0] == "list":
        try:
            return same_shape(shape_of(left), shape_of(two))
        except Unreadable:
            return False
    return _is_same_value(left, two)


def _same_intervals(target: Intervals | None, answer: Intervals | None) -> bool:
    if target is None or answer is None or len(target.parts) != len(answer.parts):
        return False

    def lower_end(interval: tuple[Tree, Tree, bool, bool]) -> float:
        low = real(interval[0])
        return low if low is not None else 0.0

    ordered = zip(
        sorted(target.parts, key=lower_end),
        sorted(answer.parts, key=lower_end),
        strict=True,
    )
    return all(
        _same_end(target_interval[0], two[0], target_interval[2], two[2])
        and _same_end(target_interval[1], two[1], target_interval[3], two[3])
        for target_interval, two in ordered
    )


def _same_end(left: Tree, two: Tree, closed: bool, other_closed: bool) -> bool:
    if left in (INFINITY, LOWEST) or two in (INFINITY, LOWEST):
        return left == two
    return closed is other_closed and _is_same_value(left, two)


def _same_matrices(target: Shape, answer: Shape) -> bool:
    target_rows, two = (_matrix_rows(shape) for shape in (target, answer))
    if target_rows is None or two is None:
        return False
    if len(target_rows) != len(two) and (
        len(target_rows) == len(two[0]) == 1 or len(two) == len(target_rows[0]) == 1
    ):
        flat_one, flat_two = (
            [tree for row in rows for tree in row] for rows in (target_rows, two)
        )
        return len(flat_one) == len(flat_two) and all(
            map(_is_same_value, flat_one, flat_two)
        )
    return [len(row) for row in target_rows] == [len(row) for row in two] and all(
        all(map(_is_same_value, *rows)) for rows in zip(target_rows, two, strict=True)
    )


def _matrix_rows(shape: Shape) -> tuple[tuple[Tree, ...], ...] | None:
    if isinstance(shape, Matrix):
        return shape.rows
    if isinstance(shape, Values) and shape.ordered:
        return (shape.trees,)
    return None


def _same_equations(target: Shape, answer: Shape) -> bool:
    """Return whether two equations have the same solutions: their differences are multiples."""
    target_equation, two = (_as_equation(shape) for shape in (target, answer))
    if target_equation is None or two is None or target_equation.sign != two.sign:
        return False
    ratios = []
    try:
        for values in sample_points(
            target_equation.left, target_equation.right, two.left, two.right
        ):
            first = evaluate(("-", target_equation.left, target_equation.right), values)
            second = evaluate(("-", two.left, two.right), values)
            if equal_numbers(second, Fraction(0)):
                return False
            ratios.append(first / second)
    except (Unreadable, OverflowError, ZeroDivisionError):
        return False
    return (
        len(ratios) > 1
        and all(equal_numbers(ratio, ratios[0]) for ratio in ratios)
        and not equal_numbers(ratios[0], Fraction(0))
    )


def _as_equation(shape: Shape) -> Equation | None:
    if isinstance(shape, Equation):
        return shape
    if not isinstance(shape, Values) or len(shape.trees) != 1 or shape.name is None:
        return None
    if shape.name[0] == "name" and names_in(shape.trees[0]):
        return Equation(shape.name, shape.trees[0])
    return None


def _same_assigned(assigned: Assigned, listed: Values) -> bool:
    values = [tree for _, tree in sorted(assigned.values)]
    if len(values) != len(listed.trees):
        return False
    if listed.ordered is not False:
        as_written = [tree for _, tree in assigned.values]
        return all(map(_is_same_value, values, listed.trees)) or all(
            map(_is_same_value, as_written, listed.trees)
        )
    return _same_values(Values(tuple(values), ordered=False), listed)
