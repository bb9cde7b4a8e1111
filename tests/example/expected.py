"""What each example dataset must hold, computed from the CSV files by DuckDB.

Independent of the definitions: the same questions in another engine's SQL.
"""

FLIGHTS = """
    SELECT time_hour + to_minutes(minute) AS event_time, make_date(year, month, day) AS flight_date,
      carrier, flight, tailnum, origin, dest, distance, sched_dep_time, dep_time, dep_delay,
      sched_arr_time, arr_time, arr_delay, air_time
    FROM flights
"""
LEFT = f"""
    SELECT event_time, origin AS airport, flight_date, carrier, flight, tailnum, dest, distance,
      sched_dep_time, dep_delay
    FROM ({FLIGHTS}) WHERE dep_time IS NOT NULL
"""
STORMS = """
    SELECT time_hour AS event_time, origin, wind_gust, precip, visib
    FROM weather WHERE wind_gust >= 45 OR precip >= 0.3 OR visib < 0.5
"""

EXPECTED = {
    "us.bts.flights": FLIGHTS,
    "us.iem.weather": """
        SELECT time_hour AS event_time, time_hour AS observed_at, origin, temp, dewp, humid,
          wind_dir, wind_speed, wind_gust, precip, pressure, visib
        FROM weather
    """,
    "us.faa.planes": "SELECT TIMESTAMP '2013-01-01' AS event_time, * FROM planes",
    "openflights.airports": "SELECT TIMESTAMP '2013-01-01' AS event_time, * FROM airports",
    "us.bts.airlines": "SELECT TIMESTAMP '2013-01-01' AS event_time, * FROM airlines",
    "nyc.departures.ewr": f"FROM ({LEFT}) WHERE airport = 'EWR'",
    "nyc.departures.jfk": f"FROM ({LEFT}) WHERE airport = 'JFK'",
    "nyc.departures.lga": f"FROM ({LEFT}) WHERE airport = 'LGA'",
    "nyc.departures": LEFT,
    "nyc.departures.morning": f"""
        SELECT event_time, airport, carrier, flight, dest, sched_dep_time, dep_delay
        FROM ({LEFT}) WHERE sched_dep_time >= 500 AND sched_dep_time < 1000
    """,
    "nyc.flights.delayed": f"""
        SELECT event_time, origin, dest, carrier, flight, dep_delay, arr_delay,
          arr_delay - dep_delay AS lost_in_the_air
        FROM ({FLIGHTS}) WHERE arr_delay > 14
    """,
    "nyc.flights.cancelled": f"""
        SELECT event_time, origin, dest, carrier, flight, tailnum
        FROM ({FLIGHTS}) WHERE dep_time IS NULL
    """,
    "nyc.flights.long-haul": f"""
        SELECT event_time, origin, dest, carrier, flight, distance, air_time,
          (distance * 60) // air_time AS miles_per_hour
        FROM ({FLIGHTS}) WHERE distance > 1999
    """,
    "nyc.weather.storms": STORMS,
    "nyc.disruptions": f"""
        SELECT event_time, origin AS airport, 'cancelled' AS what,
          carrier || ' ' || flight || ' to ' || dest AS details
        FROM ({FLIGHTS}) WHERE dep_time IS NULL
        UNION ALL
        SELECT event_time, origin, 'storm', concat_ws(
          ', ', 'gusts ' || round(wind_gust)::INT || ' mph',
          'rain ' || precip::DECIMAL(5, 2) || ' in', 'sight ' || visib::DECIMAL(5, 2) || ' mi')
        FROM ({STORMS})
    """,
    "nyc.departures.weather": f"""
        SELECT event_time, airport, carrier, flight, dest, dep_delay,
          temp, wind_speed, precip, visib
        FROM ({LEFT}) d JOIN weather w
          ON w.origin = d.airport AND w.time_hour = date_trunc('hour', d.event_time)
    """,
    # A day is counted when a later flight, cancelled or not, says that it is over.
    "nyc.delays.daily": f"""
        SELECT date_trunc('day', event_time) AS event_time, carrier, count(*) AS flights,
          count(*) FILTER (dep_delay >= 15) AS delayed, sum(dep_delay)::BIGINT AS minutes
        FROM ({LEFT})
        WHERE date_trunc('day', event_time) + INTERVAL 1 DAY <= (
          SELECT max(event_time) FROM ({FLIGHTS}))
        GROUP BY ALL
    """,
    "nyc.routes.delayed": f"""
        SELECT event_time, row_number() OVER (ORDER BY mean_delay DESC, airport, dest) AS place,
          airport, dest, flights, mean_delay
        FROM (
          SELECT max(event_time) AS event_time, airport, dest, count(*) AS flights,
            round(sum(dep_delay) / count(*), 2)::DECIMAL(6, 2) AS mean_delay
          FROM ({LEFT}) GROUP BY airport, dest HAVING count(*) > 99)
        QUALIFY place <= 10
    """,
}

AGGREGATES = {
    "us.bts.flights": "count(*), count(DISTINCT dest), sum(distance), max(air_time)",
    "us.iem.weather": "count(*), count(wind_gust), max(temp), min(temp), max(precip)",
    "us.faa.planes": "count(*), count(year), min(year), sum(seats), count(speed)",
    "openflights.airports": "count(*), count(tzone), max(alt), sum(tz)",
    "us.bts.airlines": "count(*), min(carrier), max(name)",
    "nyc.departures": "count(*), sum(dep_delay), epoch_ms(min(event_time))",
    "nyc.departures.morning": "count(*), sum(dep_delay), max(sched_dep_time)",
    "nyc.flights.delayed": "count(*), sum(arr_delay), max(lost_in_the_air)",
    "nyc.flights.cancelled": "count(*), count(tailnum), count(DISTINCT carrier)",
    "nyc.flights.long-haul": "count(*), sum(miles_per_hour), count(air_time)",
    "nyc.weather.storms": "count(*), max(wind_gust), min(visib)",
    "nyc.departures.weather": "count(*), sum(dep_delay), max(wind_speed), count(precip)",
    "nyc.delays.daily": "count(*), sum(flights), sum(delayed), sum(minutes)",
    "nyc.disruptions": "count(*), count(*) FILTER (what = 'storm'), max(length(details))",
}
