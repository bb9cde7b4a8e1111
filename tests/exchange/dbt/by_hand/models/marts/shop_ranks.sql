select
    shop_id,
    sum(kilos) as kilos,
    {{ dbt_utils.safe_divide('sum(kilos)', 'count(*)') }} as mean
from {{ ref('stg_deliveries') }}
group by shop_id
