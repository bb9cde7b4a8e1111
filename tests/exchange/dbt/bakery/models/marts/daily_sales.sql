{{
    config(
        materialized='incremental',
        unique_key=['day', 'shop_id'],
        event_time='day'
    )
}}

with sales as (

    select * from {{ ref('stg_sales') }}
    {% if is_incremental() %}
    where sold_at > (select max(day) from {{ this }})
    {% endif %}

),

shops as (

    select * from {{ ref('stg_shops') }}

)

select
    date_trunc('day', sold_at) as day,
    shop_id,
    shops.shop_name,
    count(*) as sales,
    sum(amount) as amount, -- in euros
    sum(pieces / 2.0) as pairs
from sales
inner join shops using (shop_id)
group by 1, 2, 3
