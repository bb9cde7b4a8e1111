"""The functions that a query may call: what Spark 4.3.0 has, without those that are forbidden.

Written with `python -m odfbuild.engine.spark.queries.list_functions`. A function that a later
release adds is refused until someone has looked at it. Imports nothing: plans look at it, too.
"""

# Name, numbers of arguments, and the class of an aggregate.
_SIGNATURES = """
    !:1 %:2 &:2 *:2 +:2 -:2 /:2 <:2 <<:2 <=:2 <=>:2 =:2 ==:2 >:2 >=:2 >>:2 >>>:2 ^:2 abs:1 acos:1
    acosh:1 add_months:2 aes_decrypt:2-5 aggregate:3-4 and:2 any:1:BoolOr any_value:1-2:AnyValue
    approx_count_distinct:1-2:HyperLogLogPlusPlus approx_percentile:2-3:ApproximatePercentile
    approx_top_k:1-3:ApproxTopK approx_top_k_accumulate:1-2:ApproxTopKAccumulate
    approx_top_k_combine:1-2:ApproxTopKCombine approx_top_k_estimate:1-2 array:0+
    array_agg:1:CollectList array_append:2 array_compact:1 array_contains:2 array_distinct:1
    array_except:2 array_insert:3 array_intersect:2 array_join:2-3 array_max:1 array_min:1
    array_position:2 array_prepend:2 array_remove:2 array_repeat:2 array_size:1 array_sort:1-2
    array_union:2 arrays_overlap:2 arrays_zip:0+ ascii:1 asin:1 asinh:1 assert_true:1-2 atan:1
    atan2:2 atanh:1 avg:1:Average base64:1 between:3 bigint:1 bin:1 binary:1 bit_and:1:BitAndAgg
    bit_count:1 bit_get:2 bit_length:1 bit_or:1:BitOrAgg bit_xor:1:BitXorAgg
    bitmap_and_agg:1:BitmapAndAgg bitmap_bit_position:1 bitmap_bucket_number:1
    bitmap_construct_agg:1:BitmapConstructAgg bitmap_count:1 bitmap_or_agg:1:BitmapOrAgg
    bool_and:1:BoolAnd bool_or:1:BoolOr boolean:1 bround:1-2 btrim:1-2 cardinality:1 cast:0+ cbrt:1
    ceil:1-2 ceiling:1-2 char:1 char_length:1 character_length:1 chr:1 coalesce:1+ collate:2
    collation:1 collect_list:1:CollectList collect_set:1:CollectSet collect_union:1:CollectUnion
    concat:0+ concat_ws:1+ contains:2 conv:3 convert_timezone:2-3 corr:2:Corr cos:1 cosh:1 cot:1
    count:1+:Count count_if:1:CountIf count_min_sketch:0-4:CountMinSketchAggExpressionBuilder
    covar_pop:2:CovPopulation covar_samp:2:CovSample crc32:1 csc:1 cume_dist:0 date:1 date_add:2
    date_diff:2 date_format:2 date_from_unix_date:1 date_part:2 date_sub:2 date_trunc:2 dateadd:2
    datediff:2 datepart:2 day:1 dayname:1 dayofmonth:1 dayofweek:1 dayofyear:1 decimal:1 decode:2+
    degrees:1 dense_rank:0+ div:2 double:1 e:0 element_at:2 elt:2+ encode:2 endswith:2 equal_null:2
    every:1:BoolAnd exists:2 exp:1 explode:0-1 explode_outer:0-1 expm1:1 extract:2 factorial:1
    filter:2 find_in_set:2 first:1-2:First first_value:1-2:First flatten:1 float:1 floor:1-2
    forall:2 format_number:2 format_string:1+ from_base32:1 from_csv:2-3 from_json:2-3
    from_unixtime:1-2 from_utc_timestamp:2 get:2 get_json_object:2 getbit:2 greatest:2+
    grouping:1:Grouping grouping_id:0+:GroupingID hash:1+ hex:1 histogram_numeric:2:HistogramNumeric
    hll_sketch_agg:1-2:HllSketchAgg hll_sketch_estimate:1 hll_union:2-3
    hll_union_agg:1-2:HllUnionAgg hmac:2-3 hour:1+ hypot:2 if:3 ifnull:2 ilike:2-3 in:0+ initcap:1
    inline:0-1 inline_outer:0-1 instr:2-4 int:1 is_valid_utf8:1 is_valid_variant:1 is_variant_null:1
    isnan:1 isnotnull:1 isnull:1 jaro_winkler_similarity:2 json_array_length:1 json_object_keys:1
    json_tuple:2+ kll_sketch_get_n_bigint:1 kll_sketch_get_n_double:1 kll_sketch_get_n_float:1
    kll_sketch_get_quantile_bigint:2 kll_sketch_get_quantile_double:2
    kll_sketch_get_quantile_float:2 kll_sketch_get_rank_bigint:2 kll_sketch_get_rank_double:2
    kll_sketch_get_rank_float:2 kll_sketch_to_string_bigint:1 kll_sketch_to_string_double:1
    kll_sketch_to_string_float:1 kurtosis:1:Kurtosis lag:0-4 last:1-2:Last last_day:1
    last_value:1-2:Last lcase:1 lead:0-4 least:2+ left:2 len:1 length:1 levenshtein:2-3 like:2-3
    listagg:1-2:ListAgg ln:1 locate:2-3 log:1-2 log10:1 log1p:1 log2:1 lower:1 lpad:2-3 ltrim:1-2
    luhn_check:1 make_date:3 make_dt_interval:0-4 make_interval:0-7 make_time:3
    make_timestamp:1,2,3,6,7 make_timestamp_ltz:2,3,6,7 make_timestamp_ntz:2,6 make_valid_utf8:1
    make_ym_interval:0-2 map:0+ map_concat:0+ map_contains_key:2 map_entries:1 map_filter:2
    map_from_arrays:2 map_from_entries:1 map_keys:1 map_values:1 map_zip_with:3 mask:0-5 max:1:Max
    max_by:2-3:MaxByBuilder md5:1 mean:1:Average median:1:Median min:1:Min min_by:2-3:MinByBuilder
    minute:1+ mod:2 mode:0-2:ModeBuilder month:1 monthname:1 months_between:2-3 named_struct:0+
    nanvl:2 negative:1 next_day:2 not:1 nth_value:2-3 ntile:0-1 nullif:2 nullifzero:1 nvl:2 nvl2:3
    octet_length:1 or:2 overlay:3-4 parse_json:1 parse_url:2-3 percent_rank:0+
    percentile:2-3:Percentile percentile_approx:2-3:ApproximatePercentile
    percentile_cont:1:PercentileContBuilder percentile_disc:1:PercentileDiscBuilder pi:0 pmod:2
    posexplode:0-1 posexplode_outer:0-1 position:2-3 positive:1 pow:2 power:2 printf:1+ quarter:1
    quote:1 radians:1 raise_error:1 rank:0+ reduce:3-4 regexp:2 regexp_count:2 regexp_extract:2-3
    regexp_extract_all:2-3 regexp_instr:2-3 regexp_like:2 regexp_replace:3-4 regexp_substr:2
    regr_avgx:2:RegrAvgX regr_avgy:2:RegrAvgY regr_count:2:RegrCount regr_intercept:2:RegrIntercept
    regr_r2:2:RegrR2 regr_slope:2:RegrSlope regr_sxx:2:RegrSXX regr_sxy:2:RegrSXY regr_syy:2:RegrSYY
    repeat:2 replace:2-3 reverse:1 right:2 rint:1 rlike:2 round:1-2 row_number:0 rpad:2-3 rtrim:1-2
    schema_of_csv:1-2 schema_of_json:1-2 schema_of_variant:1 schema_of_variant_agg:1 sec:1 second:1+
    sentences:1-3 sequence:2-3 session_window:2 sha:1 sha1:1 sha2:2 shiftleft:2 shiftright:2
    shiftrightunsigned:2 sign:1 signum:1 sin:1 sinh:1 size:1 skewness:1:Skewness slice:3 smallint:1
    some:1:BoolOr sort_array:1-2 soundex:1 space:1 split:2-3 split_part:3 sqrt:1 st_asbinary:1-2
    st_geogfromwkb:1 st_geomfromwkb:1-2 st_setsrid:2 st_srid:1 stack:2+ startswith:2
    std:1:StddevSamp stddev:1:StddevSamp stddev_pop:1:StddevPop stddev_samp:1:StddevSamp
    str_to_map:1-3 string:1 string_agg:1-2:ListAgg struct:0+ substr:2-3 substring:2-3
    substring_index:3 sum:1:Sum tan:1 tanh:1 theta_difference:2 theta_intersection:2
    theta_intersection_agg:1:ThetaIntersectionAgg theta_sketch_agg:1-2:ThetaSketchAgg
    theta_sketch_estimate:1 theta_union:2-3 theta_union_agg:1-2:ThetaUnionAgg time:1 time_bucket:2-3
    time_diff:3 time_from_micros:1 time_from_millis:1 time_from_seconds:1 time_to_micros:1
    time_to_millis:1 time_to_seconds:1 time_trunc:2 timestamp:1 timestamp_micros:1
    timestamp_millis:1 timestamp_nanos:1 timestamp_seconds:1 tinyint:1 to_base32:1 to_binary:1-2
    to_char:2 to_csv:1-2 to_date:1-2 to_json:1-2 to_number:2 to_time:1-2 to_timestamp:1-2
    to_timestamp_ltz:1-2 to_timestamp_ntz:1-2 to_unix_timestamp:1-2 to_utc_timestamp:2 to_varchar:2
    to_variant_object:1 transform:2 transform_keys:2 transform_values:2 translate:3 trim:1-2 trunc:2
    try_add:2 try_aes_decrypt:2-5 try_avg:1:TryAverageExpressionBuilder try_divide:2
    try_element_at:2 try_make_interval:1-7 try_make_timestamp:1,2,3,6,7
    try_make_timestamp_ltz:2,3,6,7 try_make_timestamp_ntz:2,6 try_mod:2 try_multiply:2
    try_parse_json:1 try_parse_url:2-3 try_subtract:2 try_sum:1:TrySumExpressionBuilder
    try_to_binary:1-2 try_to_date:1-2 try_to_number:2 try_to_time:1-2 try_to_timestamp:1-2
    try_url_decode:1 try_validate_utf8:1 try_variant_array_append:3 try_variant_get:2-3
    try_variant_insert:3 try_variant_set:0-4 tuple_difference_double:2 tuple_difference_integer:2
    tuple_difference_theta_double:2 tuple_difference_theta_integer:2
    tuple_intersection_agg_double:1-2:TupleIntersectionAggDouble
    tuple_intersection_agg_integer:1-2:TupleIntersectionAggInteger tuple_intersection_double:2-3
    tuple_intersection_integer:2-3 tuple_intersection_theta_double:2-3
    tuple_intersection_theta_integer:2-3
    tuple_sketch_agg_double:0-4:TupleSketchAggDoubleExpressionBuilder
    tuple_sketch_agg_integer:0-4:TupleSketchAggIntegerExpressionBuilder
    tuple_sketch_estimate_double:1 tuple_sketch_estimate_integer:1 tuple_sketch_summary_double:1-2
    tuple_sketch_summary_integer:1-2 tuple_sketch_theta_double:1 tuple_sketch_theta_integer:1
    tuple_union_agg_double:0-3:TupleUnionAggDoubleExpressionBuilder
    tuple_union_agg_integer:0-3:TupleUnionAggIntegerExpressionBuilder tuple_union_double:0-4
    tuple_union_integer:0-4 tuple_union_theta_double:0-4 tuple_union_theta_integer:0-4 typeof:1
    ucase:1 unbase64:1 unhex:1 unix_date:1 unix_micros:1 unix_millis:1 unix_nanos:1 unix_seconds:1
    unix_timestamp:0-2 upper:1 url_decode:1 url_encode:1 validate_utf8:1 var_pop:1:VariancePop
    var_samp:1:VarianceSamp variance:1:VarianceSamp variant_array_append:3 variant_delete:2+
    variant_get:2-3 variant_insert:3 variant_set:0-4 variant_strip_nulls:0-2 vector_avg:1
    vector_cosine_similarity:2 vector_inner_product:2 vector_l2_distance:2 vector_norm:1-2
    vector_normalize:1-2 vector_sum:1 weekday:1 weekofyear:1 when:0+ width_bucket:4 window:2-4
    window_time:1 xxhash64:1+ year:1 zeroifnull:1 zip_with:3 |:2 ~:1
"""

_FOUND = [each.split(":") for each in _SIGNATURES.split()]

ALLOWED = frozenset(name for name, *_ in _FOUND)

_ARITIES = {name: arity for name, arity, *_ in _FOUND}

AGGREGATES = {
    name: kind[0].removesuffix("Builder").removesuffix("Expression")
    for name, _, *kind in _FOUND
    if kind
}
"""The class behind the name of an aggregate."""


def takes(name: str, arguments: int) -> bool:
    """Whether the function `name` may be called with so many arguments."""
    arity = _ARITIES[name]
    if arity.endswith("+"):
        return arguments >= int(arity[:-1])
    if "," in arity:
        return str(arguments) in arity.split(",")
    first, _, last = arity.partition("-")
    return int(first) <= arguments <= int(last or first)


def arity_of(name: str) -> str:
    """How many arguments a function takes, in words."""
    arity = _ARITIES[name]
    if arity.endswith("+"):
        return f"at least {arity[:-1]} argument{'' if arity == '1+' else 's'}"
    first, _, last = arity.partition("-")
    if last:
        return f"{first} to {last} arguments"
    return f"{arity.replace(',', ', ')} argument{'' if arity == '1' else 's'}"
