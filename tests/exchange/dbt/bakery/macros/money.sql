{% macro total(pieces, price) %}round({{ pieces }} * {{ price }}, 2){% endmacro %}

{% macro weekday(column) %}{{ return(adapter.dispatch('weekday')(column)) }}{% endmacro %}

{% macro default__weekday(column) %}extract(dow from {{ column }}){% endmacro %}
