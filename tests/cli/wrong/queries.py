"""Wrong queries as people write them: the wrong part in «», the code, what is said, the way out.

They read `cities` (offset, op, system_time, event_time, city, population BIGINT, area DOUBLE) and
`people` (the same system columns, event_time, id, name, city).
"""

from __future__ import annotations

WRONG = [
    # --- Syntax ---
    ("SELECT event_time, city FROM cities «WHER» population > 1", "E0501", "'WHER'", "WHERE"),
    ("«SELCT» event_time, city FROM cities", "E0501", "'SELCT'", "SELECT"),
    ("SELECT event_time, city «FORM» cities", "E0501", "'FORM'", "FROM"),
    ("SELECT event_time FROM cities «GROUP» event_time", "E0501", "without BY", "GROUP BY"),
    ("SELECT event_time FROM cities «ORDER» event_time", "E0501", "without BY", "ORDER BY"),
    ("SELECT event_time, upper«(»city FROM cities", "E0501", "not closed", "close it"),
    ("SELECT event_time, upper(city)«)» AS c FROM cities", "E0501", "no opening", "remove it"),
    ("SELECT event_time, «'»none AS c FROM cities", "E0501", "does not end", "close it"),
    ("SELECT event_time,«,» city FROM cities", "E0501", "nothing precedes", "remove it"),
    (
        "SELECT event_time, city FROM cities WHERE city = 'a' «ADN» population > 1",
        "E0501",
        "'ADN'",
        "AND",
    ),
    (
        "SELECT event_time, CASE WHEN population > 1 THEN 'a' «FROM» cities",
        "E0501",
        "CASE without END",
        "END",
    ),
    (
        "SELECT event_time FROM cities; «SELECT» event_time FROM people",
        "E0501",
        "single statement",
        "one SELECT",
    ),
    ("«DELETE» FROM cities", "E0502", "DELETE is not allowed", "SELECT over its inputs"),
    ("«CREATE» TABLE x AS SELECT event_time FROM cities", "E0502", "not allowed", "SELECT"),
    ("«INSERT» INTO cities SELECT * FROM people", "E0502", "not allowed", "SELECT"),
    # --- Templates, and habits of dbt ---
    ('SELECT event_time FROM «{{ ref("cities") }}»', "E0550", "nothing renders", "`inputs`"),
    ("SELECT event_time FROM «{{ source('raw', 'cities') }}»", "E0550", "renders", "`inputs`"),
    (
        "SELECT event_time FROM cities WHERE population > «{{ var('least') }}»",
        "E0550",
        "nothing renders",
        "`vars",
    ),
    (
        "«{{ config(materialized='table') }}» SELECT event_time FROM cities",
        "E0550",
        "nothing renders",
        "`merge`",
    ),
    (
        "SELECT event_time FROM cities «{% if is_incremental() %}» WHERE 1 = 1 {% endif %}",
        "E0550",
        "nothing renders",
        "NAME.yaml.j2",
    ),
    (
        "SELECT event_time FROM cities WHERE city = '' OR city = «{{ city }}»",
        "E0550",
        "nothing renders",
        "NAME.yaml.j2",
    ),
    # --- Relations ---
    ("SELECT event_time FROM «citys»", "E0504", "'citys' is not an input", "'cities'"),
    ("SELECT event_time FROM «elsewhere»", "E0504", "not an input", "its inputs are: cities"),
    (
        "SELECT c.event_time FROM cities c JOIN «town» t ON c.city = t.city",
        "E0504",
        "'town' is not an input",
        "its inputs are",
    ),
    (
        "SELECT event_time FROM cities WHERE city IN (SELECT city FROM «towns»)",
        "E0504",
        "'towns' is not an input",
        "its inputs are",
    ),
    ("SELECT event_time FROM «raw».cities", "E0504", "'raw.cities' is not an input", "'cities'"),
    ("SELECT event_time FROM «parquet».`/etc/passwd`", "E0504", "not an input", "its inputs are"),
    ("SELECT event_time FROM «read_files»('/etc')", "E0503", "read_files()", "there are: "),
    (
        "WITH big AS (SELECT event_time FROM cities) SELECT event_time FROM «bg»",
        "E0504",
        "'bg' is not an input",
        "'big'",
    ),
    # --- Columns ---
    ("SELECT event_time, «ctiy» FROM cities", "E0501", "no input has a column 'ctiy'", "'city'"),
    ("SELECT event_time, c.«ctiy» FROM cities c", "E0501", "'c' has no column 'ctiy'", "'city'"),
    ("SELECT event_time FROM cities WHERE «populaton» > 1", "E0501", "'populaton'", "population"),
    (
        "SELECT event_time FROM cities ORDER BY «populatoin», event_time",
        "E0501",
        "'populatoin'",
        "population",
    ),
    ("SELECT max(event_time) AS event_time FROM cities GROUP BY «cty»", "E0501", "'cty'", "city"),
    (
        "SELECT c.event_time FROM cities c JOIN people p ON c.city = p.«ctiy»",
        "E0501",
        "'p' has no column 'ctiy'",
        "'city'",
    ),
    ("SELECT «x».event_time FROM cities c", "E0501", "'x' is neither a table nor a column", "c"),
    (
        "SELECT c.event_time, «city» FROM cities c JOIN people p ON c.city = p.city",
        "E0501",
        "both 'c' and 'p' have a column 'city'",
        "c.city",
    ),
    (
        "SELECT event_time, population * 2 AS twice FROM cities WHERE «twice» > 1",
        "E0501",
        "'twice'",
        "WHERE cannot use result names",
    ),
    (
        "SELECT * EXCEPT (offset, op, system_time, «citty») FROM cities",
        "E0501",
        "'citty'",
        "'city'",
    ),
    (
        "SELECT event_time, (SELECT max(id) FROM people p WHERE p.city = c.«town») FROM cities c",
        "E0501",
        "'c' has no column 'town'",
        "there are",
    ),
    (
        "WITH b AS (SELECT event_time, city AS town FROM cities) SELECT event_time, «city» FROM b",
        "E0501",
        "no input has a column 'city'",
        "there are event_time, town",
    ),
    (
        "SELECT event_time, «nme» FROM (SELECT event_time, name FROM people) p",
        "E0501",
        "'nme'",
        "'name'",
    ),
    ("SELECT «event_time»", "E0501", "no column 'event_time'", "FROM is missing"),
    (
        "SELECT event_time, city FROM cities UNION ALL SELECT «event_time», name, id FROM people",
        "E0501",
        "UNION of 2 columns with 3",
        "the same columns",
    ),
    # --- Functions ---
    ("SELECT event_time, «uper»(city) AS c FROM cities", "E0501", "no function uper()", "upper()"),
    ("SELECT event_time, «iif»(population > 1, 1, 2) AS c FROM cities", "E0501", "iif()", "if()"),
    (
        "SELECT event_time, «strftime»('%Y', event_time) AS y FROM cities",
        "E0501",
        "strftime()",
        "date_format()",
    ),
    (
        "SELECT event_time, «upper»(city, 1) AS c FROM cities",
        "E0501",
        "takes 1 argument, not 2",
        "https://",
    ),
    (
        "SELECT event_time, «round»(area, 1, 2) AS c FROM cities",
        "E0501",
        "takes 1 to 2 arguments, not 3",
        "https://",
    ),
    (
        "SELECT event_time, «concat_ws»() AS c FROM cities",
        "E0501",
        "takes at least 1 argument",
        "https://",
    ),
    ("SELECT event_time, «now»() AS seen FROM cities", "E0505", "reads the clock", "event time"),
    (
        "SELECT event_time, «current_date» AS seen FROM cities",
        "E0505",
        "reads the clock",
        "event time",
    ),
    (
        "SELECT event_time, CAST(«'now'» AS TIMESTAMP) AS t FROM cities",
        "E0505",
        "reads the clock",
        "event time",
    ),
    ("SELECT event_time, «rand»() AS r FROM cities", "E0505", "is random", "remove rand()"),
    ("SELECT event_time, «uuid»() AS r FROM cities", "E0505", "is random", "remove uuid()"),
    (
        "SELECT event_time, «monotonically_increasing_id»() AS n FROM cities",
        "E0505",
        "on disk",
        "remove",
    ),
    ("SELECT event_time FROM «cities» TABLESAMPLE (10 PERCENT)", "E0502", "TABLESAMPLE", "filter"),
    # --- Groups, and the order of rows ---
    (
        "SELECT max(event_time) AS event_time, «city», count(*) AS n FROM cities",
        "E0501",
        "'city' is neither in GROUP BY nor in an aggregate",
        "GROUP BY",
    ),
    (
        "SELECT «event_time», city, count(*) AS n FROM cities GROUP BY city",
        "E0501",
        "'event_time' is neither",
        "max(event_time)",
    ),
    (
        "SELECT event_time, city FROM cities WHERE «count»(*) > 1",
        "E0501",
        "WHERE cannot hold",
        "HAVING",
    ),
    (
        "SELECT max(event_time) AS event_time, sum(«max»(population)) AS n FROM cities",
        "E0501",
        "inside of another aggregate",
        "subquery",
    ),
    (
        "SELECT max(event_time) AS event_time, «avg»(area) AS mean FROM cities",
        "E0506",
        "avg() of floating point numbers",
        "DECIMAL",
    ),
    (
        "SELECT max(event_time) AS event_time, «sum»(area * 2) AS total FROM cities",
        "E0506",
        "sum() of floating point numbers",
        "DECIMAL",
    ),
    (
        "SELECT max(event_time) AS event_time, «sum»(CAST(population AS DOUBLE)) AS n FROM cities",
        "E0506",
        "sum() of floating point numbers",
        "DECIMAL",
    ),
    (
        "SELECT max(event_time) AS event_time, «avg»(population) AS mean FROM cities",
        "E0506",
        "avg() of BIGINT",
        "SUM(population) / COUNT(population)",
    ),
    (
        "SELECT max(event_time) AS event_time, «first»(city) AS c FROM cities",
        "E0506",
        "depends on the order of rows",
        "min(city)",
    ),
    (
        "SELECT max(event_time) AS event_time, «collect_list»(city) AS c FROM cities",
        "E0506",
        "depends on the order of rows",
        "array_sort",
    ),
    (
        "SELECT max(event_time) AS event_time, «stddev»(population) AS c FROM cities",
        "E0506",
        "depends on the order of rows",
        "SUM, COUNT",
    ),
    (
        "SELECT date_trunc('DAY', «event_time») AS event_time, count(*) AS n FROM cities"
        " GROUP BY date_trunc('HOUR', event_time)",
        "E0501",
        "'event_time' stands in GROUP BY within another expression only",
        "max(event_time)",
    ),
    (
        "SELECT max(event_time) AS event_time, upper(«city») AS c, count(*) AS n FROM cities"
        " GROUP BY lower(city)",
        "E0501",
        "'city' stands in GROUP BY within another expression only",
        "max(city)",
    ),
    (
        "SELECT max(event_time) AS event_time, «sum»(city) AS n FROM cities",
        "E0506",
        "sum() of a text makes floating point numbers",
        "sum(CAST(city AS DECIMAL(18, 2)))",
    ),
    (
        "SELECT event_time, city, «row_number»() OVER (ORDER BY event_time) AS n FROM cities",
        "E0506",
        "row_number() OVER is ambiguous",
        "ORDER BY event_time, city",
    ),
    (
        "SELECT event_time, city, «lag»(population) OVER (PARTITION BY city ORDER BY event_time)"
        " AS n FROM cities",
        "E0506",
        "lag() OVER is ambiguous",
        "ORDER BY event_time, population",
    ),
    (
        "SELECT event_time, city, n FROM (SELECT event_time, city, population, «row_number»()"
        " OVER (PARTITION BY city ORDER BY population DESC) AS n FROM cities) WHERE n = 1",
        "E0506",
        "row_number() OVER is ambiguous",
        "ORDER BY population DESC, event_time",
    ),
    (
        "SELECT event_time, city FROM cities LIMIT «10»",
        "E0506",
        "LIMIT",
        "ORDER BY event_time, city",
    ),
    # --- The result ---
    (
        "«SELECT» city, population FROM cities",
        "E0515",
        "no column 'event_time'",
        "select event_time",
    ),
    ("«SELECT» city AS event_time FROM cities", "E0516", "'event_time' is STRING", "CAST"),
    (
        "SELECT event_time, city, «population» AS city FROM cities",
        "E0511",
        "two columns called 'city'",
        "AS",
    ),
    (
        "SELECT event_time, «offset», city FROM cities",
        "E0514",
        "'offset', which is a system column",
        "source_offset",
    ),
    (
        "SELECT «*», city AS town FROM (SELECT event_time, system_time, city FROM cities) c",
        "E0514",
        "'system_time', which is a system column",
        "* EXCEPT (offset, op, system_time)",
    ),
]
"""Query, code, a part of the message, a part of the help."""
