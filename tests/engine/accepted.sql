-- One query a line: what people write.
SELECT * EXCEPT (offset, op, system_time) FROM cities
SELECT event_time, upper(trim(city)) AS city, population * 2 AS twice FROM cities WHERE population > 10 AND city LIKE 'c%'
SELECT c.event_time, c.city AS `the city` FROM cities AS c WHERE NOT (c.city IS NULL OR c.city IN ('a', 'b'))
SELECT event_time, CASE WHEN population > 5 THEN 'big' WHEN population IS NULL THEN NULL ELSE 'small' END AS size FROM cities
SELECT event_time, coalesce(city, 'none') AS city, nvl(population, 0) AS n, nullif(city, '') AS x, ifnull(city, 'y') AS y FROM cities
SELECT event_time, CAST(population AS DECIMAL(10, 2)) / 3 AS third, population % 7 AS rest, population DIV 2 AS half FROM cities
SELECT event_time, date_trunc('HOUR', event_time) AS hour, year(event_time) AS y, extract(MONTH FROM event_time) AS m, event_time::date AS d FROM cities
SELECT event_time + INTERVAL '1' DAY AS event_time, event_time - INTERVAL 2 HOURS AS before FROM cities
SELECT event_time, TIMESTAMP '2024-01-01 00:00:00Z' AS since, DATE '2024-01-01' AS d, TIMESTAMP '2024-01-01T00:00:00' AS t FROM cities WHERE event_time >= TIMESTAMP '2020-01-01'
SELECT event_time, to_timestamp('2024-01-01 10:00', 'yyyy-MM-dd HH:mm') AS t, to_date('01/02/2024', 'dd/MM/yyyy') AS d, CAST('2024-05-01' AS DATE) AS e FROM cities
SELECT event_time, date_format(event_time, 'yyyy-MM-dd EEEE') AS day, unix_timestamp(event_time) AS s, datediff(event_time, DATE '2024-01-01') AS n FROM cities
SELECT event_time, from_utc_timestamp(event_time, 'America/New_York') AS local FROM cities
SELECT event_time, regexp_replace(city, '[0-9]+', '#') AS c, split(city, '-')[1] AS n, substring(city, 1, 3) AS s, length(city) AS l FROM cities
SELECT event_time, concat_ws('/', city, CAST(population AS STRING)) AS path, city || '!' AS c, format_string('%s: %d', city, population) AS f FROM cities
SELECT event_time, sha2(city, 256) AS h, md5(city) AS m, xxhash64(city) AS x, hex(city) AS y, base64(CAST(city AS BINARY)) AS z FROM cities
SELECT event_time, get_json_object(city, '$.a') AS a, from_json(city, 'a INT, b STRING').b AS b, to_json(named_struct('c', city)) AS c FROM cities
SELECT event_time, named_struct('city', city, 'n', population) AS s, array(city, 'x') AS a FROM cities
SELECT event_time, p.* FROM (SELECT event_time, named_struct('city', city) AS p FROM cities)
SELECT event_time, word FROM cities LATERAL VIEW explode(split(city, '-')) AS word
SELECT event_time, pos, word FROM cities, LATERAL posexplode(split(city, '-')) AS t(pos, word)
SELECT event_time, transform(split(city, '-'), x -> upper(x)) AS u, filter(array(1, 2), x -> x > 1) AS f, aggregate(array(1, 2), 0, (a, x) -> a + x) AS s FROM cities
SELECT event_time, 'a' AS which, city FROM cities UNION ALL SELECT event_time, 'b', city FROM cities
WITH big AS (SELECT * FROM cities WHERE population > 5), named AS (SELECT * FROM big WHERE city IS NOT NULL) SELECT event_time, city FROM named
SELECT date_trunc('DAY', event_time) AS event_time, city, COUNT(*) AS n, COUNT(DISTINCT population) AS d, SUM(population) AS s, MIN(population) AS lo, MAX(population) AS hi FROM cities GROUP BY 1, 2
SELECT date_trunc('DAY', event_time) AS event_time, SUM(population) / COUNT(population) AS mean FROM cities GROUP BY ALL HAVING COUNT(*) > 1
SELECT date_trunc('DAY', event_time) AS event_time, AVG(CAST(population AS DECIMAL(20, 2))) AS mean, AVG(CAST(population AS INT)) AS small FROM cities GROUP BY date_trunc('DAY', event_time)
SELECT window.start AS event_time, city, COUNT(*) AS n FROM cities GROUP BY window(event_time, '1 hour'), city
SELECT window.end AS event_time, COUNT(*) FILTER (WHERE population > 5) AS n FROM cities GROUP BY window(event_time, '1 hour', '15 minutes')
SELECT max(event_time) AS event_time, city, array_sort(collect_set(population)) AS all_of_them FROM cities GROUP BY city
SELECT max(event_time) AS event_time, listagg(DISTINCT city, ', ') WITHIN GROUP (ORDER BY city) AS names FROM cities
SELECT max(event_time) AS event_time, percentile(population, 0.5) AS mid, median(population) AS m, percentile_cont(0.9) WITHIN GROUP (ORDER BY population) AS p FROM cities
SELECT max(event_time) AS event_time, max(struct(population, city)).city AS biggest FROM cities
SELECT max(event_time) AS event_time, bool_or(population > 5) AS any_big, every(city IS NOT NULL) AS all_named, approx_count_distinct(city) AS cities FROM cities
SELECT DISTINCT date_trunc('DAY', event_time) AS event_time, city FROM cities
SELECT event_time, city, row_number() OVER (PARTITION BY city ORDER BY event_time, population) AS n FROM (SELECT event_time, city, population FROM cities)
SELECT event_time, city, rank() OVER (PARTITION BY city ORDER BY population DESC) AS r, dense_rank() OVER (ORDER BY population) AS d FROM cities
SELECT event_time, city, sum(population) OVER (PARTITION BY city ORDER BY event_time) AS so_far FROM cities
SELECT event_time, city, population FROM cities QUALIFY rank() OVER (PARTITION BY city ORDER BY population DESC) = 1
SELECT event_time, city, population FROM cities ORDER BY population DESC, city, event_time LIMIT 10
SELECT a.event_time, a.city, b.population FROM cities a JOIN cities b ON a.city = b.city AND a.event_time BETWEEN b.event_time AND b.event_time + INTERVAL '1' HOUR
SELECT a.event_time, a.city, b.population FROM cities a LEFT JOIN cities b ON a.city = b.city
SELECT a.event_time, a.city FROM cities a LEFT ANTI JOIN cities b ON a.population = b.population + 1
SELECT event_time, city FROM cities WHERE city IN (SELECT city FROM cities WHERE population > 5)
SELECT event_time, city FROM cities a WHERE EXISTS (SELECT 1 FROM cities b WHERE b.city = a.city AND b.population > a.population)
SELECT event_time, city, (SELECT max(b.population) FROM cities b WHERE b.city = a.city) AS most FROM cities a
SELECT event_time, city FROM cities EXCEPT SELECT event_time, city FROM cities WHERE population > 5
SELECT event_time, a, b FROM (SELECT event_time, city, population FROM cities) PIVOT (sum(population) FOR city IN ('a' AS a, 'b' AS b))
SELECT event_time, k, v FROM (SELECT event_time, population AS p, population + 1 AS q FROM cities) UNPIVOT (v FOR k IN (p, q))
SELECT c.event_time, c.city, n.name FROM cities c JOIN VALUES ('a', 'Aix'), ('b', 'Bonn') AS n(code, name) ON c.city = n.code
SELECT event_time, try_cast(city AS INT) AS n, try_divide(population, 0) AS d, city::string AS s FROM cities
SELECT event_time, city FROM cities WHERE city COLLATE UTF8_LCASE = 'BERLIN' OR city ILIKE '%now%'
SELECT event_time, 'now' AS word, 'current_timestamp()' AS call, "today" AS day FROM cities -- now()
FROM cities |> WHERE population > 5 |> EXTEND population * 2 AS twice |> SELECT event_time, city, twice
FROM cities |> AGGREGATE max(event_time) AS event_time, count(*) AS n GROUP BY city
SELECT max(event_time) AS event_time, city, grouping(city) AS total, count(*) AS n FROM cities GROUP BY ROLLUP (city)
SELECT date_trunc('DAY', event_time) AS event_time, stack_name, n FROM cities LATERAL VIEW stack(2, 'p', population, 'q', population + 1) AS stack_name, n
SELECT op, event_time, city FROM cities
SELECT event_time, CAST(event_time AS STRING) AS text, CAST(population AS DOUBLE) * 1.5 AS d, round(population / 3, 2) AS r, greatest(population, 3) AS g FROM cities
SELECT event_time, city AS town, row_number() OVER (PARTITION BY city ORDER BY event_time) AS n FROM cities
SELECT event_time, upper(city) AS town, population + 1 AS p, row_number() OVER (ORDER BY event_time, city, population) AS n FROM cities
SELECT event_time, lag(population * 2) OVER (ORDER BY event_time, population) AS x FROM cities
SELECT event_time, city, population, 'constant' AS c, first_value(population) OVER (PARTITION BY city ORDER BY event_time, population) AS f FROM cities
SELECT event_time, city, lag(city) OVER (ORDER BY offset) AS x FROM cities
SELECT event_time, lag(upper(city)) OVER (PARTITION BY population % 2 ORDER BY event_time, offset DESC) AS x FROM cities
SELECT event_time, c, row_number() OVER (ORDER BY offset) AS x FROM (SELECT event_time, upper(city) AS c, offset FROM cities WHERE population > 1)
SELECT a.event_time, a.city, b.population, row_number() OVER (ORDER BY a.offset, b.offset) AS x FROM cities a LEFT JOIN cities b ON a.city = b.city
SELECT event_time, upper(city) AS c, population FROM cities ORDER BY event_time, city, population LIMIT 3
SELECT event_time, upper(city) AS c FROM cities ORDER BY event_time, city LIMIT 3
SELECT event_time, city FROM cities ORDER BY offset LIMIT 3
SELECT max(event_time) AS event_time, city, sum(population) AS p, count(*) AS n FROM cities GROUP BY city ORDER BY city LIMIT 3
SELECT max(event_time) AS event_time, city, sum(population) AS p, row_number() OVER (ORDER BY sum(population), city) AS n FROM cities GROUP BY city
SELECT event_time, city, population, rank() OVER (ORDER BY population) AS r, row_number() OVER (PARTITION BY city ORDER BY event_time, population) AS n FROM cities
SELECT event_time, population, row_number() OVER (ORDER BY event_time, city COLLATE UTF8_BINARY, population) AS x, city FROM (SELECT event_time, population, city COLLATE UTF8_LCASE AS city FROM cities)
