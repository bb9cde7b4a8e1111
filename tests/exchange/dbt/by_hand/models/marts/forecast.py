def model(dbt, session):
    return dbt.ref("daily_sales")
