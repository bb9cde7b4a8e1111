import pytest, json
from odfbuild.engine.contract import Engine
from tests.engine.inputs import read, rows, slices, sql, task
pytestmark = pytest.mark.spark
F = "map('mode','FAILFAST')"
EXPR = [
 f"from_json(city, 'a INT', {F})",
 f"from_csv(city, 'a INT', {F})",
 f"from_xml(city, 'a INT', {F})",
 f"from_json(concat('[', city), 'array<int>', {F})",
 "parse_json(city)::string",
 "variant_get(parse_json('[1]'), '$.a', 'int')",
 "variant_get(parse_json('\"x\"'), '$', 'int')",
 "to_timestamp(city, 'yyyy')",
 "to_date(city)",
 "to_number(city, '999')",
 "CAST(city AS DATE)", "CAST(city AS BOOLEAN)", "CAST(city AS INTERVAL DAY)",
 "make_date(population, 13, 45)", "make_timestamp(2024, 13, 1, 0, 0, 0)", "make_interval(2147483647, 2147483647)",
 "array(1,2)[population + 5]", "element_at(array(1), 0)", "element_at(array(1), population + 7)",
 "elt(population + 9, 'a', 'b')",
 "population % (population - 1)", "div(population, population - 1)" , "population div (population - 1)",
 "CAST(9223372036854775807 AS BIGINT) + population", "abs(CAST(-128 AS TINYINT)) + CAST(population AS TINYINT) * 127Y",
 "raise_error(city)", "assert_true(population > 1)",
 "regexp_extract(city, concat('(', city))", "regexp_replace(city, '(', 'x')", "city RLIKE concat('[', city)", "regexp_extract(city, '(c)', 5)",
 "split(city, concat('(', city))[0]", "regexp_count(city, concat('*', city))", "regexp_instr(city, concat('*',city))",
 "date_format(event_time, city)", "date_format(event_time, 'YYYYbb')", "to_char(population, city)", "from_unixtime(population, city)",
 "unhex(city)", "unbase64(concat('%%%', city))", "to_binary(city, 'hex')", "to_binary(city, concat('x', city))", "decode(CAST(city AS BINARY), concat('x', city))", "encode(city, concat('nope', city))",
 "aes_decrypt(CAST(city AS BINARY), 'abcdefghijklmnop')", "aes_encrypt(city, city)",
 "from_utc_timestamp(event_time, city)", "convert_timezone(city, TIMESTAMP_NTZ'2024-01-01 00:00:00')",
 "url_decode(concat('%zz', city))", "parse_url(concat('http://[', city), 'HOST')", "parse_url(city, 'HOST')", "xpath(city, 'a/b')[0]", "xpath(city, concat('][', city))[0]", "xpath_int('<a>', 'a')",
 "json_object_keys(city)[0]", "get_json_object(city, '$.a')", "schema_of_json(city)", "schema_of_csv(city)",
 "sequence(population, -1, 1)[0]", "sequence(1, 2, CAST(population AS INT))[0]", "repeat(city, 2147483647)", "array_repeat(1, 2147483647)[0]", "lpad(city, 2147483647, 'x')","space(2147483647)",
 "str_to_map(city)['x']", "map_from_arrays(array(1,1), array(1,2))[1]", "map(1,2,1,3)[1]", "map_from_entries(array(struct(1,2),struct(1,3)))[1]",
 "overlay(city placing 'x' from -100)", "width_bucket(1.0, 1.0, 1.0, 0)", "bround(1.5, 400)", "conv(city, 99, 100)", "factorial(population+40)", "shiftleft(1, 400)", "CAST(1e300 AS DECIMAL(5,2)) + population","CAST(population AS DECIMAL(38,0)) * 99999999999999999999999999999999999999",
 "timestampadd(YEAR, 2147483647, event_time)", "date_add(DATE'2024-01-01', 2147483647)", "add_months(DATE'2024-01-01', 2147483647)", "make_ym_interval(2147483647, 12)", "make_dt_interval(2147483647,2147483647)", "timestamp_seconds(9223372036854775807)", "timestamp_millis(9223372036854775807)",
 "bitmap_bit_position(1)", "hll_sketch_estimate(CAST(city AS BINARY))", "kll_sketch_get_n_bigint(CAST(city AS BINARY))", "theta_sketch_estimate(CAST(city AS BINARY))",
 "is_valid_utf8(city)", "validate_utf8(unhex('ff'))", "collation('x' COLLATE nope)", "luhn_check(city)", "mask(city)",
 "ST_AsBinary(ST_GeomFromWKB(CAST(city AS BINARY)))", "to_avro(city)", "try_parse_json(city)::int", "session_window(event_time, city).start","get(array(1), population)", "listagg(city)", "percentile(population, 7)", "percentile_approx(population, 0.5, 0)", "histogram_numeric(population, 1)[0].x", "approx_count_distinct(population, 99.0)", "max_by(city, population)", "sum(9223372036854775807L)", "avg(CAST(population AS DECIMAL(38,0)) * 1e0)", "to_json(named_struct('a', city), map('timestampFormat','bb'))", "from_json(city, 'a DATE', map('dateFormat','bbb'))", "from_csv(city, 'a DATE', map('dateFormat','bbb'))","from_json(concat('{\"a\":\"',city,'\"}'), 'a DATE', map('dateFormat','yyyy','mode','FAILFAST'))", "to_csv(struct(city), map('sep',''))", "from_csv(city,'a INT',map('maxCharsPerColumn','2'))", "from_json('{\"a\":1}', 'a INT', map('maxStringLen','1'))",  "from_json(concat('{\"abc\":\"',city,'\"}'), 'abc STRING', map('maxNestingDepth','0'))",  "from_json(city, 'a INT', map('mode','PERMISSIVEX'))", "from_json(repeat('[', 2000), 'a STRING')", "from_xml(repeat('<a>', 2000), 'a STRING')", "parse_json(repeat('[', 2000))::string", "parse_json(concat('\"', repeat('x', 200000000), '\"'))::string",
]
@pytest.mark.parametrize("n", range(len(EXPR)))
def test_x(spark_engine: Engine, tmp_path, n):
    try:
        agg = EXPR[n].split("(")[0] in ("listagg","percentile","percentile_approx","histogram_numeric","approx_count_distinct","max_by","sum","avg")
        q = f"SELECT max(event_time) AS event_time, {EXPR[n]} AS x FROM cities" if agg else f"SELECT event_time, {EXPR[n]} AS x FROM cities"
        r = spark_engine.transform(task(tmp_path, sql(q), slices(tmp_path, rows(0, 3))))
        out = "OK " + str(read(r.parts)["x"].to_pylist())[:60]
    except Exception as e:
        out = f"{getattr(e,'code',type(e).__name__)} {getattr(e,'message',str(e))[:150]!r} at {getattr(e,'location',None)}"
        if not hasattr(e,'code'): out = "!!!! "+type(e).__name__+" "+" ".join(str(e).split())[:600]
    with open('/tmp/server-x/explore.txt','a') as f: f.write(EXPR[n][:80]+"  ==> "+out+"\n")
