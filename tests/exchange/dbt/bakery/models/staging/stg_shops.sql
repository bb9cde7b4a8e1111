{{ config(materialized='ephemeral') }}

select id as shop_id, name as shop_name, city from {{ ref('raw_shops') }}
