"""Which divisions are of whole numbers: other engines cut their results, Spark has `DIV` for it.

What a part of a query gives is known from its text: numbers, casts, `COUNT`, and what is computed
of them. Of columns it is known once somebody has looked at the inputs. Spark checks every `/` that
stays: it divides only where a side is DOUBLE.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

WHOLE = ("INT", "BIGINT")
"""Types of whole numbers, the wider one last."""
_MARK = "odfbuild_whole"
_LARGEST_INT = 2**31 - 1
_OF_THE_SIDES = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Div, exp.Coalesce, exp.Nullif)
_OF_THE_VALUE = (exp.Paren, exp.Neg, exp.Abs)


def mark_whole_divisions(tree: exp.Expression, engine: str, columns: Mapping[str, str]) -> None:
    """Note at each division of whole numbers what type it gives there.

    `columns` are those of the inputs by name in lower case, with types in `WHOLE`.
    """
    named = {each.alias.lower() for each in tree.find_all(exp.Alias)}
    known = {name: kind for name, kind in columns.items() if name not in named}
    for node in tree.find_all(exp.Div):
        kind = _kind(node, engine, known)
        if kind is not None:
            node.meta[_MARK] = kind


def whole_division(node: exp.Expression) -> exp.Expression:
    """A division in Spark's terms."""
    kind = node.meta.get(_MARK)
    if kind is None:
        return node
    made = exp.IntDiv(this=node.this, expression=node.expression)
    return made if kind == "BIGINT" else exp.cast(made, kind)


def _kind(node: exp.Expression, engine: str, columns: Mapping[str, str]) -> str | None:
    """The type of whole number that a part of a query gives; `None`: unknown, or another one."""
    if isinstance(node, exp.Literal):
        return _of_number(node, engine)
    if isinstance(node, exp.Cast):
        kind = str(node.to.this.value) if isinstance(node.to.this, exp.DType) else ""
        return kind if kind in WHOLE else None
    if isinstance(node, exp.Column):
        return columns.get(node.name.lower())
    if isinstance(node, exp.Count):
        return "BIGINT"
    if isinstance(node, exp.Anonymous):
        return "BIGINT" if node.name.lower() in ("to_unixtime", "json_get_int") else None
    if isinstance(node, _OF_THE_VALUE):
        return _kind(node.this, engine, columns)
    if isinstance(node, _OF_THE_SIDES):
        sides = [node.this, node.args.get("expression"), *node.expressions]
        kinds = [_kind(each, engine, columns) for each in sides if each is not None]
        found = [each for each in kinds if each is not None]
        return max(found, key=WHOLE.index) if len(found) == len(kinds) else None
    return None


def _of_number(node: exp.Literal, engine: str) -> str | None:
    if node.is_string or not node.name.isdigit():
        return None
    is_wide = engine == "datafusion" or int(node.name) > _LARGEST_INT
    return "BIGINT" if is_wide else "INT"
