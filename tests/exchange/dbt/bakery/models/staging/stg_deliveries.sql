select * from {{ source('mill', 'deliveries') }}
