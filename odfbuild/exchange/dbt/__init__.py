"""Read projects of dbt, and write them as definitions of odfbuild."""
