"""Queries of all modes over `events` and `people`, for what must hold of every query."""

MAP = [
    "SELECT event_time, id, upper(city) AS city FROM events WHERE amount > 10",
    "SELECT event_time, id, amount * 2 AS amount, x / 3 AS x FROM events",
    "SELECT event_time, id, tag FROM events LATERAL VIEW explode(split(tags, ' ')) AS tag",
    "SELECT event_time, id, city FROM events UNION ALL SELECT event_time, id, name FROM people",
    "SELECT event_time, named_struct('city', city, 'id', id) AS place FROM events",
    "SELECT event_time, CASE WHEN amount > 50 THEN 'large' ELSE 'small' END AS size FROM events",
    "WITH few AS (SELECT * FROM events WHERE id % 5 = 0) SELECT event_time, id, hash(city) AS h"
    " FROM few UNION ALL SELECT event_time, -id, xxhash64(city) FROM few",
    "SELECT event_time, id, date_trunc('HOUR', event_time) AS hour, regexp_replace(city, 'o', '0')"
    " AS city FROM events WHERE city RLIKE '^[A-P]'",
]
STREAM = [
    "SELECT window.start AS event_time, city, COUNT(*) AS n, SUM(amount) AS total FROM events"
    " GROUP BY window(event_time, '1 hour'), city",
    "SELECT window.end AS event_time, MAX(amount) AS top, MIN(city) AS first FROM events"
    " GROUP BY window(event_time, '2 hours', '30 minutes')",
    "SELECT window.start AS event_time, COUNT(DISTINCT city) AS cities FROM events"
    " WHERE amount > 5 GROUP BY window(event_time, '1 hour', '1 hour', '20 minutes')"
    " HAVING COUNT(*) > 1",
    "SELECT window.start AS event_time, AVG(CAST(x AS DECIMAL(38, 4))) AS mean FROM events"
    " GROUP BY window(event_time, '45 minutes')",
    "SELECT window.start AS event_time, kind, COUNT(*) AS n FROM ("
    " SELECT event_time, 'event' AS kind FROM events UNION ALL"
    " SELECT event_time, 'person' FROM people) GROUP BY window(event_time, '3 hours'), kind",
    "SELECT window.start AS event_time, array_sort(collect_set(city)) AS cities FROM events"
    " GROUP BY window(event_time, '1 hour')",
    "SELECT window.start AS event_time, percentile(amount, 0.5) AS median FROM events"
    " GROUP BY window(event_time, '1 hour'), id % 2",
    "SELECT window.start AS event_time, COUNT_IF(amount > 50) AS many, bool_or(amount > 99) AS any"
    " FROM events GROUP BY window(event_time, '15 minutes')",
    "SELECT e.event_time, e.id, p.name FROM events e JOIN people p ON e.id = p.id",
    "SELECT e.event_time, e.id, p.name, p.event_time AS since FROM events e JOIN people p"
    " ON e.id % 10 = p.id % 10 AND e.event_time BETWEEN p.event_time AND"
    " p.event_time + INTERVAL '40' MINUTES",
    "SELECT e.event_time, p.name FROM people p, events e WHERE p.city = e.city AND"
    " e.event_time > p.event_time - INTERVAL '5' MINUTES AND e.event_time < p.event_time",
    "SELECT greatest(e.event_time, p.event_time) AS event_time, e.id FROM (SELECT * FROM events"
    " WHERE amount > 50) e CROSS JOIN (SELECT * FROM people WHERE id < 5) p",
]
CHANGELOG = [
    "SELECT MAX(event_time) AS event_time, COUNT(*) AS n FROM events",
    "SELECT MAX(event_time) AS event_time, city, COUNT(*) AS n, SUM(amount) AS total FROM events"
    " GROUP BY city",
    "SELECT MIN(event_time) AS event_time, id, MAX(x) AS top FROM events GROUP BY id HAVING"
    " COUNT(*) > 2",
    "SELECT DISTINCT date_trunc('DAY', event_time) AS event_time, city FROM events",
    "SELECT * FROM (SELECT event_time, id, amount, ROW_NUMBER() OVER (ORDER BY amount DESC,"
    " event_time, id) AS place FROM events) WHERE place <= 5",
    "SELECT event_time, id, RANK() OVER (PARTITION BY city ORDER BY amount) AS place FROM events",
    "SELECT event_time, id, SUM(amount) OVER (PARTITION BY city ORDER BY event_time, id) AS total"
    " FROM events",
    "SELECT event_time, id, LAG(amount) OVER (PARTITION BY city ORDER BY event_time, id, amount)"
    " AS before FROM events",
    "SELECT e.event_time, e.id, p.name FROM events e LEFT JOIN people p ON e.id = p.id",
    "SELECT COALESCE(e.event_time, p.event_time) AS event_time, e.id, p.name FROM events e FULL"
    " JOIN people p ON e.id = p.id AND e.city = p.city",
    "SELECT e.event_time, e.id FROM events e LEFT SEMI JOIN people p ON e.id = p.id",
    "SELECT e.event_time, e.id FROM events e LEFT ANTI JOIN people p ON e.city = p.city",
    "SELECT a.event_time, a.id, b.amount FROM events a JOIN events b ON a.id = b.id + 1",
    "SELECT event_time, id FROM events WHERE id IN (SELECT id FROM people)",
    "SELECT event_time, id FROM events e WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = e.id)",
    "SELECT event_time, id, (SELECT COUNT(*) FROM people) AS people FROM events WHERE id < 4",
    "SELECT event_time, city FROM events EXCEPT SELECT event_time, city FROM people",
    "SELECT date_trunc('HOUR', event_time) AS event_time, city FROM events INTERSECT"
    " SELECT date_trunc('HOUR', event_time), city FROM people",
    "SELECT event_time, city FROM events UNION SELECT event_time, city FROM people",
    "SELECT MAX(event_time) AS event_time, city, id % 2 AS odd, COUNT(*) AS n FROM events"
    " GROUP BY GROUPING SETS ((city), (id % 2))",
    "SELECT MAX(event_time) AS event_time, city, id % 3 AS third, SUM(amount) AS total FROM events"
    " GROUP BY CUBE (city, id % 3)",
    "SELECT * FROM (SELECT event_time, city, amount FROM events) PIVOT (SUM(amount) FOR city IN"
    " ('Oslo', 'Paris'))",
    "SELECT event_time, id, amount, city FROM events ORDER BY amount DESC, event_time, id, city"
    " LIMIT 7",
    "SELECT MAX(event_time) AS event_time, city, array_sort(collect_list(amount)) AS amounts"
    " FROM events GROUP BY city",
    "SELECT MAX(event_time) AS event_time, city, CAST(SUM(CAST(x AS DECIMAL(38, 12))) AS DOUBLE)"
    " AS x FROM events GROUP BY city",
    "SELECT date_trunc('HOUR', event_time) AS event_time, approx_count_distinct(id) AS ids FROM"
    " events GROUP BY 1",
    "SELECT session_window.start AS event_time, city, COUNT(*) AS n FROM events"
    " GROUP BY session_window(event_time, '20 minutes'), city",
    "SELECT MAX(e.event_time) AS event_time, p.name, SUM(e.amount) AS total FROM events e JOIN"
    " people p ON e.id = p.id GROUP BY p.name",
]
ALL = [*MAP, *STREAM, *CHANGELOG]
"""48 queries."""
FEW = [*MAP[2:4], STREAM[0], STREAM[4], STREAM[9], CHANGELOG[1], CHANGELOG[4], CHANGELOG[9]]
"""Some of each mode."""
ONE_OF_EACH = [MAP[2], STREAM[9], CHANGELOG[1]]
