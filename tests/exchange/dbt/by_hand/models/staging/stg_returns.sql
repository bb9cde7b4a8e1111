select return_id, sale_id from {{ source('till', 'returned_goods') }}
