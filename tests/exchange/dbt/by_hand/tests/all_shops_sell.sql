select shop_id from {{ ref('stg_shops') }} where shop_id not in (select shop_id from {{ ref('stg_sales') }})
