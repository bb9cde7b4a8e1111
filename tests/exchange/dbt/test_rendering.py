"""Queries of dbt are rendered in a sandbox, and what cannot be known is said with its line."""

from __future__ import annotations

import pytest

from odfbuild.exchange.dbt.model import Place
from odfbuild.exchange.dbt.rendering import Context, macros_in, render

MACROS = """
{% macro cents(x) %}{{ return(adapter.dispatch('cents')(x)) }}{% endmacro %}
{% macro default__cents(x, digits=2) -%} round({{ x }} / 100, {{ digits }}) {%- endmacro %}
{% macro duckdb__cents(x) -%} ({{ x }} / 100)::decimal(18, 2) {%- endmacro %}
"""
CONTEXT = Context(
    adapter="duckdb",
    macros=macros_in(MACROS, "macros/cents.sql"),
    variables={"day": "2026-01-01", "days": [1, 2]},
    tables={
        ("ref", "orders"): "model.x.orders",
        ("source", "shop", "items"): "source.x.shop.items",
    },
)


def rendered(text: str, context: Context = CONTEXT):
    return render(text, Place("models/a.sql"), context)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("select * from {{ ref('orders') }}", "select * from odfbuild_input_0_"),
        (
            "{{ source('shop', 'items') }} {{ ref('orders') }} {{ source('shop', 'items') }}",
            "odfbuild_input_0_ odfbuild_input_1_ odfbuild_input_0_",
        ),
        ("{{ var('day') }}", "2026-01-01"),
        ("{{ var('none', 7) }}", "7"),
        ("{% for day in var('days') %}{{ day }},{% endfor %}", "1,2,"),
        ("a{% if is_incremental() %} where b > (select max(b) from {{ this }}){% endif %}", "a"),
        ("{{ cents('price') }}", "(price / 100)::decimal(18, 2)"),
        ("{{ target.type }}", "duckdb"),
        ("{% do log('x', info=true) %}{% set y = [] %}{% do y.append(1) %}a", None),
    ],
)
def test_what_dbt_renders_for_an_empty_warehouse_is_rendered(text: str, sql: str | None) -> None:
    found = rendered(text)
    assert (found.query and found.query.sql) == sql


def test_a_macro_for_another_database_falls_back_to_its_default() -> None:
    context = Context(
        adapter="snowflake", macros=CONTEXT.macros, variables={}, tables=CONTEXT.tables
    )
    assert rendered("{{ cents('price') }}", context).query.sql == "round(price / 100, 2)"


def test_settings_are_read_and_inputs_are_listed_once() -> None:
    found = rendered("{{ config(materialized='table', tags=['a']) }}{{ ref('orders') }}")
    assert found.config == {"materialized": "table", "tags": ["a"]}
    assert found.query.inputs == ("model.x.orders",)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("select\n{{ dbt_utils.star(1) }}", 2, "`dbt_utils` is a package"),
        ("{{ ref('other') }}", 1, "ref('other') is not there"),
        ("{{ source('shop', 'other') }}", 1, "source('shop', 'other') is not there"),
        ("a\n\n{{ this }}", 3, "`this` reads its own table"),
        ("{% if execute %}a{% endif %}", 1, "`execute` asks the database"),
        ("{{ run_query('select 1') }}", 1, "`run_query` asks the database"),
        ("{{ adapter.get_relation('a') }}", 1, "`adapter.get_relation` asks the database"),
        ("{{ dbt.date_trunc('day', 'x') }}", 1, "`dbt` depends on the database"),
        ("{{ env_var('HOME') }}", 1, "`env_var` reads the environment"),
        ("{{ target.schema }}", 1, "`target.schema` is in a profile"),
        ("{{ var('none') }}", 1, "give it with --var none=…"),
        ("{{ own_macro() }}", 1, "`own_macro` is no macro of this project"),
        ("\n{% if a %}", 2, "this is not understood as Jinja"),
        ("{{ ''.__class__.__mro__ }}", 1, "is unsafe"),
        ("{{ cents.__globals__ }}", 1, "is unsafe"),
        ("{{ 1 / 0 }}", 1, "division by zero"),
        ("{{ 'a' * 2000000000 }}", None, "too much for one file"),
    ],
)
def test_what_cannot_be_known_is_told_with_its_line(text: str, line: int | None, why: str) -> None:
    found = rendered(text)
    assert found.query is None
    assert why in found.problem.text
    assert found.problem.place == Place("models/a.sql", line)
