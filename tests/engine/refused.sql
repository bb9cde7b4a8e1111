-- One query a line: what hides the clock, reaches for more than its inputs, or depends on the
-- order of rows, as somebody would write it who knows Spark well and means harm, or who knows it
-- less well and means none.
SELECT event_time, TIMESTAMP 'n\u006fw' AS x FROM cities
SELECT event_time, TIMESTAMP '\156ow' AS x FROM cities
SELECT event_time, DATE '\u0074oday' AS x FROM cities
SELECT event_time, TIMESTAMP r'now' AS x FROM cities
SELECT event_time, CAST(CAST('now' AS CHAR(3)) AS TIMESTAMP) AS x FROM cities
SELECT event_time, CAST(CAST('now' AS VARCHAR(9)) AS TIMESTAMP) AS x FROM cities
SELECT event_time, CAST('now' COLLATE UTF8_LCASE AS TIMESTAMP) AS x FROM cities
SELECT event_time, CAST(x'6e6f77' AS STRING)::TIMESTAMP AS x FROM cities
SELECT event_time, x FROM cities, VALUES (CAST('now' AS TIMESTAMP)) AS t(x)
SELECT event_time, x FROM cities, VALUES (current_timestamp()) AS t(x)
SELECT event_time, x FROM cities, VALUES (TIMESTAMP 'now') AS t(x)
SELECT event_time, x FROM cities, VALUES (rand()) AS t(x)
SELECT event_time, x FROM cities, VALUES (uuid()) AS t(x)
SELECT max(event_time) AS event_time, min(city COLLATE UTF8_LCASE) AS x FROM cities
SELECT max(event_time) AS event_time, city COLLATE UTF8_LCASE AS x FROM cities GROUP BY city COLLATE UTF8_LCASE
SELECT max(event_time) AS event_time, CAST(collate(city, 'UNICODE_CI') AS STRING) AS x FROM cities GROUP BY collate(city, 'UNICODE_CI')
SELECT DISTINCT date(event_time) AS event_time, city COLLATE UTF8_LCASE AS x FROM cities
SELECT date(event_time) AS event_time, c.x COLLATE UTF8_BINARY AS x FROM (SELECT DISTINCT event_time, city COLLATE UTF8_LCASE AS x FROM cities) c
SELECT max(event_time) AS event_time, array_sort(collect_list(city COLLATE UTF8_LCASE)) AS x FROM cities
SELECT max(event_time) AS event_time, listagg(city COLLATE UTF8_LCASE, ',') WITHIN GROUP (ORDER BY city COLLATE UTF8_LCASE) AS x FROM cities
SELECT max(event_time) AS event_time, avg(population) AS x FROM cities
SELECT max(event_time) AS event_time, mean(unix_micros(event_time)) AS x FROM cities
SELECT max(event_time) AS event_time, try_sum(population) AS x FROM cities
SELECT max(event_time) AS event_time, sum(population / 3) AS x FROM cities
SELECT max(event_time) AS event_time, stddev(population) AS x FROM cities
SELECT max(event_time) AS event_time, approx_top_k(city) AS x FROM cities
SELECT max(event_time) AS event_time, to_json(theta_sketch_agg(city)) AS x FROM cities
SELECT max(event_time) AS event_time, theta_sketch_agg(city) AS x FROM cities
SELECT max(event_time) AS event_time, hll_sketch_agg(city) AS x FROM cities
SELECT max(event_time) AS event_time, tuple_sketch_agg_integer(city, 1) AS x FROM cities
SELECT max(event_time) AS event_time, schema_of_variant_agg(parse_json(city)) AS x FROM cities
SELECT max(event_time) AS event_time, mode(city) AS x FROM cities
SELECT max(event_time) AS event_time, any_value(city) AS x FROM cities
SELECT max(event_time) AS event_time, max_by(city, population) AS x FROM cities
SELECT max(event_time) AS event_time, listagg(city, ',') AS x FROM cities
SELECT max(event_time) AS event_time, listagg(city, ',') WITHIN GROUP (ORDER BY population) AS x FROM cities
SELECT max(event_time) AS event_time, listagg(DISTINCT city) AS x FROM cities
SELECT max(event_time) AS event_time, array_sort(collect_list(city), (a, b) -> 0) AS x FROM cities
SELECT max(event_time) AS event_time, array_sort(array_distinct(collect_list(city))) AS x FROM cities
SELECT max(event_time) AS event_time, percentile_approx(population, 0.5) AS x FROM cities
SELECT max(event_time) AS event_time, vector_sum(array(1.0F)) AS x FROM cities
SELECT max(event_time) AS event_time, vector_avg(array(1.0F)) AS x FROM cities
SELECT event_time, lag(population) OVER (ORDER BY event_time) AS x FROM cities
SELECT event_time, first_value(population) OVER (PARTITION BY city ORDER BY event_time) AS x FROM cities
SELECT event_time, sum(population) OVER (ORDER BY event_time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM cities
SELECT event_time, city FROM cities QUALIFY row_number() OVER (PARTITION BY city ORDER BY 1) = 1
SELECT event_time, city FROM cities LIMIT 1
SELECT event_time, city FROM cities ORDER BY event_time LIMIT 1
SELECT event_time, city FROM cities ORDER BY event_time OFFSET 1
FROM cities |> LIMIT 1
FROM cities |> TABLESAMPLE (10 PERCENT)
FROM cities |> AGGREGATE max(event_time) AS event_time, first(city) AS x
FROM cities |> EXTEND rand() AS x
FROM cities |> SET city = uuid()
FROM cities |> WHERE event_time < now()
FROM cities |> JOIN text.`/etc/passwd`
SELECT event_time, (SELECT first(city) FROM cities) AS x FROM cities
SELECT event_time, x FROM cities a, LATERAL (SELECT city AS x FROM cities b WHERE b.population = a.population LIMIT 1)
SELECT event_time, (SELECT b.city FROM cities b WHERE b.population = a.population ORDER BY b.event_time LIMIT 1) AS x FROM cities a
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT event_time, n FROM cities, t
SELECT event_time, v FROM cities, session.v
SELECT event_time, session.v AS x FROM cities
SELECT event_time, system.session.v AS x FROM cities
SELECT event_time, IDENTIFIER('city') AS x FROM cities
SELECT event_time, IDENTIFIER('now')() AS x FROM cities
SELECT event_time, `now`() AS x FROM cities
SELECT event_time, builtin.now() AS x FROM cities
SELECT event_time, system.builtin.rand() AS x FROM cities
SELECT event_time, filter(array(1), x -> rand() > 0) AS x FROM cities
SELECT event_time, array_sort(array(1), (a, b) -> CAST(rand() AS INT)) AS x FROM cities
SELECT event_time, ai_query('m', city) AS x FROM cities
SELECT event_time, sql(city) AS x FROM cities
SELECT * FROM read_files('/etc')
SELECT * FROM sql_functions()
SELECT event_time FROM cities WATERMARK event_time DELAY OF INTERVAL 1 MINUTE
SELECT event_time, from_csv(city, 'a TIMESTAMP', map('timeZone', current_timezone())) AS x FROM cities
SELECT event_time, to_json(named_struct('t', now())) AS x FROM cities
SELECT event_time, date_format(current_date, 'y') AS x FROM cities
SELECT event_time, unix_timestamp() AS x FROM cities
SELECT event_time, unix_millis('now') AS x FROM cities
SELECT event_time, CAST('now' AS TIMESTAMP_NTZ) AS x FROM cities
SELECT event_time, timestampadd(DAY, 1, 'now') AS x FROM cities
SELECT event_time, timestampdiff(DAY, 'yesterday', event_time) AS x FROM cities
SELECT event_time, extract(YEAR FROM DATE 'today') AS x FROM cities
SELECT event_time, convert_timezone('UTC', TIMESTAMP_NTZ 'now') AS x FROM cities
SELECT event_time, convert_timezone('Europe/Berlin', TIMESTAMP_NTZ '2024-01-01 00:00:00') AS x FROM cities
SELECT event_time, _metadata.file_name AS x FROM cities
SELECT event_time, `_metadata` AS x FROM cities
SELECT window.start AS event_time, first(city) AS x FROM cities GROUP BY window(event_time, '1 hour')
SELECT event_time, localtime AS x FROM cities
SELECT event_time, current_time(3) AS x FROM cities
SELECT event_time, TIME 'now' AS x FROM cities
SELECT event_time, date_trunc('DAY', CASE WHEN true THEN 'now' END) AS x FROM cities
SELECT event_time, nvl2(1, 'now', 'x')::date AS x FROM cities
SELECT event_time, element_at(array('now'), 1)::date AS x FROM cities
SELECT event_time, count(DISTINCT city COLLATE UTF8_LCASE) OVER () AS x FROM cities
SELECT event_time, max(x) AS x FROM (SELECT event_time, x FROM cities PIVOT (first(population) AS x FOR city IN ('a'))) GROUP BY 1
SELECT max(event_time) AS event_time, try_avg(population) AS x FROM cities
SELECT max(event_time) AS event_time, try_sum(CAST(population AS DECIMAL(38, 0))) AS x FROM cities
SELECT event_time, city FROM (SELECT event_time, city COLLATE UTF8_LCASE AS city FROM cities) ORDER BY event_time, city LIMIT 1
SELECT event_time, row_number() OVER (ORDER BY event_time, c) AS x, c FROM (SELECT event_time, city COLLATE UTF8_LCASE AS c FROM cities)
SELECT event_time, CAST('now' COLLATE UTF8_LCASE AS DATE) AS x FROM cities
SELECT event_time, lcase('NOW')::date AS x FROM cities
SELECT event_time, split_part('now,x', ',', 1)::date AS x FROM cities
SELECT event_time, x FROM cities, (SELECT explode(array(1)) AS x UNION SELECT rand())
(SELECT event_time, city COLLATE UTF8_LCASE FROM cities) INTERSECT (SELECT event_time, city COLLATE UTF8_LCASE FROM cities)
SELECT event_time, upper(city) AS town, population, row_number() OVER (ORDER BY event_time, population) AS n FROM cities
SELECT event_time, lag(population * 2) OVER (ORDER BY event_time) AS x FROM cities
SELECT event_time, sum(population * 2) OVER (ORDER BY event_time ROWS 1 PRECEDING) AS x FROM cities
SELECT event_time, population, row_number() OVER (ORDER BY length(city)) AS n FROM cities
SELECT a.event_time, a.city, b.population, row_number() OVER (ORDER BY a.offset) AS x FROM cities a LEFT JOIN cities b ON a.city = b.city
SELECT event_time, city, row_number() OVER (ORDER BY offset) AS x FROM (SELECT event_time, city, offset FROM cities UNION ALL SELECT event_time, city, offset FROM cities)
SELECT event_time, n, row_number() OVER (ORDER BY offset) AS x FROM (SELECT event_time, offset, explode(array(1, 2)) AS n FROM cities)
SELECT event_time, x, row_number() OVER (ORDER BY event_time, city) AS n FROM (SELECT event_time, city, row_number() OVER (ORDER BY event_time, city) AS x FROM cities)
SELECT a.event_time, b.c, row_number() OVER (ORDER BY a.offset, b.city) AS x FROM cities a LEFT JOIN (SELECT city, coalesce(city, 'z') AS c FROM cities) b ON a.city = b.c
SELECT event_time, upper(city) AS c FROM cities ORDER BY event_time LIMIT 3
SELECT max(event_time) AS event_time, city, sum(population) AS p, row_number() OVER (ORDER BY sum(population)) AS n FROM cities GROUP BY city
SELECT event_time, population AS p, row_number() OVER (ORDER BY event_time, city) AS x, city FROM (SELECT event_time, population, city COLLATE UTF8_LCASE AS city FROM cities)
SELECT a.event_time, row_number() OVER (ORDER BY a.event_time) AS x, b.city FROM cities a JOIN cities b ON a.offset = b.offset
WITH a AS (SELECT event_time, city, population FROM cities), b AS (SELECT *, row_number() OVER (PARTITION BY city ORDER BY event_time) AS n FROM a) SELECT * FROM b
WITH a AS (SELECT event_time, city, population FROM cities), b AS (SELECT * FROM a ORDER BY event_time LIMIT 3) SELECT * FROM b
WITH m AS (SELECT date_trunc('MONTH', event_time) AS month, city, SUM(population) AS n FROM cities GROUP BY 1, 2), j AS (SELECT m.*, f.population FROM m  JOIN cities f ON m.city = f.city) SELECT month AS event_time, city, population, LAG(n) OVER (PARTITION BY city ORDER BY month) AS before FROM j
WITH m AS (SELECT date_trunc('MONTH', event_time) AS month, city, SUM(population) AS n FROM cities GROUP BY 1, 2), j AS (SELECT m.*, f.population FROM m LEFT JOIN cities f ON m.city = f.city) SELECT month AS event_time, city, population, LAG(n) OVER (PARTITION BY city ORDER BY month) AS before FROM j
WITH m AS (SELECT date_trunc('MONTH', event_time) AS month, city, SUM(population) AS n FROM cities GROUP BY 1, 2), f AS (SELECT city AS c, MIN(month) AS first FROM m GROUP BY 1), j AS (SELECT m.*, f.first, f.c FROM m FULL JOIN f ON m.city = f.c) SELECT month AS event_time, city, c, first, LAG(n) OVER (PARTITION BY city ORDER BY month) AS before FROM j
