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
FROM cities |> WHERE population > 5 |> SELECT event_time, city
FROM cities SELECT event_time, city
TABLE cities |> SELECT event_time, upper(city) AS c
SELECT event_time, city FROM cities WHERE city ILIKE ANY ('a%', 'b%')
SELECT event_time, city FROM cities WHERE city LIKE ALL ('a%', '%b')
SELECT event_time, `city`, population FROM `cities` WHERE NOT population <=> 3
SELECT event_time, !isnull(city) AS x FROM cities
SELECT event_time, try_cast(city AS INT) AS x, cast(population AS string) y FROM cities
SELECT event_time, parse_json(city):a.b::string AS x FROM cities
SELECT event_time, interval 3 days + event_time AS later FROM cities
SELECT event_time, event_time - INTERVAL '1 02:03:04' DAY TO SECOND AS x FROM cities
SELECT event_time, timestampdiff(MINUTE, event_time, event_time) AS d, dateadd(DAY, 1, event_time) AS n, date_diff(HOUR, event_time, event_time) AS h FROM cities
SELECT event_time, timestampadd(SECOND, 1, event_time) AS d FROM cities
SELECT max(event_time) AS event_time, city, grouping(city) AS g, sum(population) AS s FROM cities GROUP BY city WITH ROLLUP
SELECT max(event_time) AS event_time, city, grouping_id() AS g, sum(population) AS s FROM cities GROUP BY CUBE (city, population)
SELECT max(event_time) AS event_time, city FROM cities GROUP BY GROUPING SETS ((city), ())
SELECT * FROM (SELECT event_time, city, population FROM cities) UNPIVOT (v FOR k IN (population))
SELECT a.event_time, x.c FROM cities a JOIN LATERAL (SELECT upper(a.city) AS c) x
SELECT event_time, q.col FROM cities LATERAL VIEW OUTER explode(array(1, 2)) q
SELECT event_time, k, v FROM cities LATERAL VIEW explode(map('a', 1)) q AS k, v
SELECT event_time, explode(map('a', 1)) AS (k, v) FROM cities
SELECT event_time, stack(2, 'a', population, 'b', population) AS (k, v) FROM cities
SELECT event_time, inline(array(struct(1 AS a, 'x' AS b))) FROM cities
SELECT c.event_time, c.city FROM cities c NATURAL JOIN cities d
SELECT event_time, city FROM cities c LEFT SEMI JOIN cities d USING (city)
SELECT c.event_time, d.n FROM cities c, VALUES (1, 'a'), (2, 'b') AS d(n, t)
SELECT c.event_time, id FROM cities c, range(3)
SELECT event_time, city FROM cities WHERE (city, population) IN (SELECT city, population FROM cities)
SELECT event_time, CASE city WHEN 'a' THEN 1 WHEN 'b' THEN 2 END AS x, if(population > 1, 'a', 'b') AS y FROM cities
SELECT event_time, city[0] AS x FROM (SELECT event_time, split(city, 'a') AS city FROM cities)
SELECT event_time, m['a'] AS x, s.a FROM (SELECT event_time, map('a', 1) AS m, named_struct('a', 1, 'b', 2) AS s FROM cities)
SELECT event_time, overlay(city PLACING 'x' FROM 2) AS a, position('a' IN city) AS b, trim(LEADING 'x' FROM city) AS c, substring(city FROM 2 FOR 3) AS d FROM cities
SELECT event_time, 1L AS a, 2S AS b, 3Y AS c, 1.5D AS d, 1.5BD AS e, 1e3 AS f, X'1F' AS g FROM cities
SELECT event_time, sum(population) OVER w AS s FROM cities WINDOW w AS (PARTITION BY city ORDER BY event_time)
SELECT event_time, ntile(4) OVER (PARTITION BY city ORDER BY event_time, population) AS x FROM (SELECT event_time, city, population FROM cities)
SELECT max(event_time) AS event_time, count(DISTINCT city, population) AS n, count(city, population) AS m FROM cities
SELECT max(event_time) AS event_time, sum(DISTINCT population) AS n, max(population) FILTER (WHERE city = 'a') AS m FROM cities HAVING count(*) > 0
SELECT max(event_time) AS event_time, city AS town FROM cities GROUP BY town
SELECT max(event_time) AS event_time, upper(city) AS up FROM cities GROUP BY upper(city) ORDER BY up
SELECT event_time AS event_time, population * 2 AS twice, twice + 1 AS more FROM cities
SELECT session_window.start AS event_time, count(*) AS n FROM cities GROUP BY session_window(event_time, '5 minutes')
WITH m AS (SELECT date_trunc('MONTH', event_time) AS month, city, SUM(population) AS n FROM cities GROUP BY 1, 2) SELECT month AS event_time, city, LAG(n) OVER (PARTITION BY city ORDER BY month) AS before FROM m
WITH m AS (SELECT date_trunc('MONTH', event_time) AS month, city, SUM(population) AS n FROM cities GROUP BY 1, 2), f AS (SELECT city AS c, MIN(month) AS first FROM m GROUP BY 1), j AS (SELECT m.*, f.first FROM m  JOIN f ON m.city = f.c) SELECT month AS event_time, city, first, LAG(n) OVER (PARTITION BY city ORDER BY month) AS before FROM j
WITH m AS (SELECT date_trunc('MONTH', event_time) AS month, city, SUM(population) AS n FROM cities GROUP BY 1, 2), f AS (SELECT city AS c, MIN(month) AS first FROM m GROUP BY 1), j AS (SELECT m.*, f.first FROM m LEFT JOIN f ON m.city = f.c) SELECT month AS event_time, city, first, LAG(n) OVER (PARTITION BY city ORDER BY month) AS before FROM j
WITH w AS (SELECT date_trunc('DAY', event_time) AS event_time, COUNT(*) AS n FROM cities GROUP BY 1) SELECT event_time, n, ROW_NUMBER() OVER (ORDER BY event_time) AS day FROM w ORDER BY event_time LIMIT 3
WITH a(t, c) AS (SELECT event_time, city FROM cities), b AS (SELECT * FROM a) SELECT t AS event_time, c FROM b
SELECT event_time, (SELECT max(population) FROM cities b WHERE b.city = a.city) AS m FROM cities a
SELECT event_time, exists(array(1, 2), x -> x > 1) AS e, zip_with(array(1), array(2), (x, y) -> x + y) AS z FROM cities
SELECT event_time, transform(array(named_struct('a', 1)), x -> x.a + population) AS t, reduce(array(1), 0, (acc, x) -> acc + x, acc -> acc * 2) AS r FROM cities
SELECT event_time, to_timestamp('2024', 'yyyy') AS a, make_date(2024, 1, 1) AS b, date'2024-01-01' AS c, timestamp_ntz'2024-01-01 00:00:00' AS d FROM cities
SELECT event_time, extract(DOW FROM event_time) AS a, date_part('year', event_time) AS b, EXTRACT(SECOND FROM event_time) AS c FROM cities
SELECT event_time, left(city, 2) AS l, right(city, 2) AS r, char_length(city) AS n, mod(population, 3) AS m, population % 3 AS k, population DIV 2 AS d FROM cities
(SELECT event_time, city FROM cities) UNION ALL (SELECT event_time, city FROM cities)
SELECT event_time, city FROM cities MINUS SELECT event_time, city FROM cities WHERE population > 5
SELECT event_time, city AS select FROM cities
SELECT event_time, city value, population end FROM cities
SELECT event_time, cities.city FROM cities ORDER BY cities.city, population, event_time LIMIT 3
SELECT * EXCEPT (offset, op, system_time), population AS p2 FROM cities
SELECT event_time, 'it''s' AS a, "double" AS b, 'a' 'b' AS c, r'\d' AS d FROM cities
SELECT event_time, percentile_disc(0.5) WITHIN GROUP (ORDER BY population) OVER (PARTITION BY city, event_time) AS p, city FROM cities
SELECT event_time, any(population > 1) OVER (PARTITION BY city) AS a FROM cities
SELECT event_time, named_struct('a', city).a AS x, struct(city AS b).b AS y FROM cities
SELECT event_time, count_if(population > 3) OVER (PARTITION BY city) AS c, max(max(population)) OVER (PARTITION BY city) AS m FROM cities GROUP BY event_time, city, population
SELECT event_time, format_number(population, 2) AS f, printf('%d', population) AS p, hash(city, population) AS h, greatest(1, population) AS g FROM cities
SELECT event_time, mask(city, lowerChar => 'q') AS j FROM cities
SELECT event_time, city /* ' ( */ FROM cities
SELECT date_trunc('DAY', event_time) AS event_time, count(*) AS n FROM cities GROUP BY date_trunc('DAY', event_time)
SELECT max(event_time) AS event_time, (2 + population) * 3 AS p, count(*) AS n FROM cities GROUP BY population + 2
SELECT max(event_time) AS event_time, upper(city) AS c, count(*) AS n FROM cities GROUP BY ROLLUP (upper(city), population)
SELECT max(event_time) AS event_time, upper(city) AS c, count(*) AS n FROM cities GROUP BY GROUPING SETS ((upper(city)), ())
SELECT max(event_time) AS event_time, upper(city) AS c, concat(c, 'x') AS d FROM cities GROUP BY upper(city)
SELECT event_time, city, row_number() OVER (PARTITION BY city ORDER BY event_time) AS n FROM cities
SELECT event_time, city, population, row_number() OVER (ORDER BY event_time, offset) AS n FROM cities
SELECT event_time, n FROM (SELECT *, row_number() OVER (ORDER BY event_time) AS n FROM cities) WHERE n < 3
SELECT event_time, city, rank() OVER (ORDER BY event_time) AS n FROM cities
SELECT from_utc_timestamp(event_time, 'Europe/Kyiv') AS event_time, from_utc_timestamp(event_time, 'UTC+02:00') AS x FROM cities
SELECT max(event_time) AS event_time, extract(YEAR FROM event_time) AS y, date_part('MONTH', event_time) AS m FROM cities GROUP BY year(event_time), month(event_time)
SELECT max(event_time) AS event_time, coalesce(city, 'x') AS c, population IS NULL AS n FROM cities GROUP BY nvl(city, 'x'), isnull(population)
SELECT max(event_time) AS event_time, city || 'x' AS c, population > 5 AS p, population % 2 AS r FROM cities GROUP BY concat(city, 'x'), 5 < population, mod(population, 2)
SELECT max(event_time) AS event_time, date(event_time) AS d, day(event_time) AS n FROM cities GROUP BY CAST(event_time AS DATE), dayofmonth(event_time)
WITH a AS (SELECT event_time, city, population FROM cities), b AS (SELECT *, row_number() OVER (PARTITION BY city ORDER BY event_time, population) AS n FROM a) SELECT * FROM b
WITH a AS (SELECT event_time, city, population FROM cities), b AS (SELECT event_time, city, rank() OVER (ORDER BY event_time) AS n, population FROM a) SELECT event_time, n, count(*) AS m FROM b GROUP BY event_time, n
