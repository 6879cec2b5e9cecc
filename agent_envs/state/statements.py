"""SQLAlchemy statements, compiled once into what a driver needs.

SQLAlchemy builds and translates a statement; that takes longer than running it on an in-memory database. So each
statement object is compiled once per dialect into a plan: the SQL text, how to convert each parameter, and how to
convert each result column. A step then costs one dictionary look-up and the driver's own call.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import UnaryExpression

from agent_envs.state.columns import codec_of

_KEPT = 2048
"""Plans kept per dialect. Statements are meant to be module constants; a program that builds them for each call must
not fill the memory."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One statement, ready for a driver."""

    sql: str
    parameters: tuple[tuple[str, Callable[[Any], Any], str], ...]
    """Name, conversion to the driver's value, and a name for messages; in the order of the placeholders, if any."""
    constants: Mapping[str, Any]
    """Values written into the statement itself, by parameter name."""
    names: tuple[str, ...]
    """Result columns."""
    conversions: tuple[tuple[str, Callable[[Any], Any]], ...]
    """Result columns whose driver value isn't the Python value."""
    positional: bool
    """Whether the driver wants a list of values rather than a mapping."""
    ordered: bool
    """Whether the statement has an ORDER BY."""
    expand: Callable[[Mapping[str, Any]], tuple[str, Any]] | None
    """For statements with an IN list: SQL text and arguments for given parameters."""

    def arguments(self, given: Mapping[str, Any]) -> Any:
        """The driver's arguments.

        Raises:
            ValueError: A parameter is missing, unknown or of the wrong type; the message names it.
        """
        values = {**self.constants, **given} if self.constants else given
        try:
            converted = [convert(values[name]) for name, convert, _ in self.parameters]
        except (KeyError, ValueError):
            raise self._complaint(values) from None
        if len(values) != len(self.parameters):
            self._refuse_unknown(values)
        return (
            converted
            if self.positional
            else dict(zip([name for name, _, _ in self.parameters], converted, strict=True))
        )

    def record(self, row: tuple[Any, ...]) -> dict[str, Any]:
        """One result row as Python values by column name."""
        record = dict(zip(self.names, row, strict=True))
        for name, convert in self.conversions:
            value = record[name]
            if value is not None:
                record[name] = convert(value)
        return record

    def _refuse_unknown(self, values: Mapping[str, Any]) -> None:
        known = {name for name, _, _ in self.parameters}
        for name in values:
            if name not in known:
                raise ValueError(
                    f"the statement has no parameter {name!r}; it has {', '.join(sorted(known)) or 'none'}"
                )

    def _complaint(self, values: Mapping[str, Any]) -> ValueError:
        for name, convert, place in self.parameters:
            if name not in values:
                return ValueError(f"parameter {name!r} is missing; pass it by name")
            try:
                convert(values[name])
            except ValueError as error:
                return ValueError(f"{place}: {error}")
        return ValueError("the parameters could not be converted")


class Plans:
    """The plans of one dialect, by statement object.

    Args:
        dialect: Dialect to compile for.
    """

    def __init__(self, dialect: sa.Dialect) -> None:
        """Start without plans."""
        self._dialect = dialect
        self._plans: dict[sa.SelectBase, Plan] = {}

    def __getitem__(self, statement: sa.SelectBase) -> Plan:
        """The statement's plan, compiled when it is first asked for."""
        plan = self._plans.get(statement)
        if plan is None:
            if len(self._plans) >= _KEPT:
                self._plans.clear()
            plan = self._plans[statement] = make_plan(statement, self._dialect)
        return plan


def make_plan(statement: sa.SelectBase, dialect: sa.Dialect) -> Plan:
    """Compile a statement.

    Raises:
        ValueError: Two result columns have one name, or the order of nulls is left to the back end.
    """
    columns = list(statement.selected_columns)
    # Plain text: SQLAlchemy's own kind of name is slow to encode and compare.
    names = tuple(str.__str__(column.key or column.name) for column in columns)
    if len(set(names)) != len(names):
        raise ValueError(f"result columns {', '.join(names)}: names repeat; give them labels")
    order = getattr(statement, "_order_by_clauses", ())
    for term in order:
        _check_nulls(term)
    compiled = statement.compile(dialect=dialect)
    positional = getattr(compiled, "positiontup", None)
    used = list(compiled.params) if positional is None else positional
    parameters = tuple((name, codec_of(compiled.binds[name].type).to_driver, _place(name, statement)) for name in used)
    constants = {name: compiled.params[name] for name in used if not compiled.binds[name].required}
    expand = _expansion(compiled, positional is not None) if compiled.post_compile_params else None
    return Plan(
        sql=compiled.string,
        parameters=parameters,
        constants=constants,
        names=names,
        conversions=tuple(
            (name, convert)
            for name, column in zip(names, columns, strict=True)
            if (convert := codec_of(column.type).from_driver) is not None
        ),
        positional=positional is not None,
        ordered=bool(order),
        expand=expand,
    )


def _check_nulls(term: Any) -> None:
    """SQLite sorts nulls first and PostgreSQL last, so a nullable column must say which it wants."""
    while isinstance(term, UnaryExpression):
        if term.modifier in (operators.nulls_first_op, operators.nulls_last_op):
            return
        term = term.element
    if isinstance(term, sa.Column) and term.nullable and not term.primary_key:
        raise ValueError(
            f"ORDER BY {term.table.description}.{term.name}: nulls come first on one back end and last on the other; "
            "write .nulls_first() or .nulls_last()"
        )


def _place(name: str, statement: sa.SelectBase) -> str:
    """The column that a parameter is compared with, for messages; else the parameter's own name."""
    for element in sa.sql.visitors.iterate(statement):
        if isinstance(element, sa.BinaryExpression):
            sides = (element.left, element.right)
            if any(isinstance(side, sa.BindParameter) and side.key == name for side in sides):
                for side in sides:
                    if isinstance(side, sa.Column):
                        return f"{side.table.description}.{side.name}"
    return f"parameter {name!r}"


def _expansion(compiled: Any, positional: bool) -> Callable[[Mapping[str, Any]], tuple[str, Any]]:
    def expand(given: Mapping[str, Any]) -> tuple[str, Any]:
        state = compiled.construct_expanded_state(dict(given))
        convert = {name: codec_of(bind.type).to_driver for name, bind in compiled.binds.items()}
        for name, parts in state.parameter_expansion.items():
            convert.update(dict.fromkeys(parts, convert[name]))
        try:
            values = {name: convert[name](value) for name, value in state.parameters.items()}
        except ValueError as error:
            raise ValueError(f"a parameter of {compiled.string!r}: {error}") from error
        return state.statement, [values[name] for name in state.positiontup] if positional else values

    return expand
