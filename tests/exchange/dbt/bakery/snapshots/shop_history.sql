{% snapshot shop_history %}
{{ config(target_schema='history', unique_key='id', strategy='check', check_cols=['city']) }}
select * from {{ ref('raw_shops') }}
{% endsnapshot %}
