{% snapshot sale_history %}
{{ config(target_schema='history', unique_key='sale_id', strategy='check', check_cols='all') }}
select sale_id, amount from {{ ref('stg_sales') }}
{% endsnapshot %}
