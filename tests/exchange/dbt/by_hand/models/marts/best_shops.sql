select * from {{ ref('shop_ranks') }} where kilos > 10
