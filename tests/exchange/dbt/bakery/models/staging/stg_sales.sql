-- One record for each line of a receipt.
with source as (

    select * from {{ ref('raw_sales') }}

)

select
    id as sale_id,
    shop_id,
    product,
    sold_at,
    pieces,
    {{ total('pieces', 'price') }} as amount
from source
where sold_at >= '{{ var("first_day") }}'
