"""Which plans, functions and aggregates a query may use, by the names that Spark gives them.

Spark's own flag for determinism is not enough: it is true for the clock and for aggregates that
depend on the order of rows. Source: measured on Spark 4.3.
"""

from __future__ import annotations

import re

from odfbuild.sql.mode import AGGREGATION, JOIN, OVER

_PLANS = """Project Filter Aggregate Join SubqueryAlias UnresolvedRelation UnresolvedWith
    UnresolvedSubqueryColumnAliases Union Distinct Except Intersect Sort GlobalLimit LocalLimit
    Offset OneRowRelation LocalRelation UnresolvedInlineTable Generate LateralJoin PipeOperator
    Window WithWindowDefinition UnresolvedHaving UnresolvedQualify Pivot Unpivot
    UnresolvedTableValuedFunction CTERelationDef CTERelationRef UnresolvedTVFAliases"""
PLANS = frozenset(_PLANS.split())
"""Unresolved plan nodes that are queries. Everything else is a command, a script or worse."""

LEAVES = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef"})

_TABLE_FUNCTIONS = """explode explode_outer posexplode posexplode_outer inline inline_outer stack
    range variant_explode variant_explode_outer json_tuple"""
TABLE_FUNCTIONS = frozenset(_TABLE_FUNCTIONS.split())

_CLOCK = """current_timestamp now current_date curdate localtimestamp current_time localtime"""
_SESSION = """current_user user session_user current_database current_schema current_catalog
    current_path current_timezone version"""
_RANDOM = """rand random randn randstr uniform uuid shuffle
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float"""
_LAYOUT = """monotonically_increasing_id spark_partition_id input_file_name
    input_file_block_start input_file_block_length"""
_CODE = "reflect java_method try_reflect"
_CLASSES = "from_protobuf to_protobuf from_avro to_avro schema_of_avro"
_XML = """xpath xpath_boolean xpath_double xpath_number xpath_float xpath_int xpath_long
    xpath_short xpath_string from_xml schema_of_xml to_xml"""

FORBIDDEN: dict[str, str] = {
    **dict.fromkeys(_CLOCK.split(), "reads the clock"),
    **dict.fromkeys(_SESSION.split(), "depends on the session"),
    **dict.fromkeys(_RANDOM.split(), "is random"),
    "aes_encrypt": "draws a random initialisation vector",
    **dict.fromkeys(_LAYOUT.split(), "depends on how data lies on disk"),
    **dict.fromkeys(_CODE.split(), "calls arbitrary Java code"),
    **dict.fromkeys(_CLASSES.split(), "loads descriptors or classes from outside"),
    **dict.fromkeys(_XML.split(), "may resolve entities from outside"),
    "python_worker_logs": "reads logs",
    "sql_keywords": "depends on the release of Spark",
    "collations": "depends on the release of Spark",
    "measure": "belongs to metric views, which no query can read",
    "counter_diff": "depends on the order of rows",
}
"""Functions that no query may call, and why."""

CLOCK_WORD = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s+\S+)?\s*", re.I)
"""Texts that are the time of the run once they are cast to a time."""
CLOCK_HELP = "use the event time or another column: a rerun must give the same records"

_CLOCK_EXPRESSIONS = """CurrentTimestamp Now CurrentDate LocalTimestamp CurrentTime
    CurrentBatchTimestamp CurrentTimestampNanos"""
CLOCK_EXPRESSIONS = frozenset(_CLOCK_EXPRESSIONS.split())
_ENVIRONMENT_EXPRESSIONS = """CurrentUser CurrentDatabase CurrentCatalog CurrentPath
    CurrentTimeZone SparkVersion VariableReference CallMethodViaReflection TryReflect AesEncrypt
    Uuid"""
ENVIRONMENT_EXPRESSIONS = frozenset(_ENVIRONMENT_EXPRESSIONS.split())

_ORDER_FREE_AGGREGATES = """Count CountIf Max Min BoolAnd BoolOr BitAndAgg BitOrAgg BitXorAgg
    Percentile PercentileCont PercentileDisc Median HyperLogLogPlusPlus CountMinSketchAgg
    BitmapConstructAgg BitmapOrAgg BitmapAndAgg PivotFirst RegrCount Grouping"""
ORDER_FREE_AGGREGATES = frozenset(_ORDER_FREE_AGGREGATES.split())
COUNTS = frozenset({"Count", "CountIf", "RegrCount", "HyperLogLogPlusPlus", "Grouping"})
"""Aggregates that tell nothing of the values themselves."""
NUMERIC_AGGREGATES = frozenset({"Sum", "Average"})
"""Exact for integers and decimals, dependent on order for floating point."""
ORDER_BOUND_WINDOWS = frozenset({"RowNumber", "Lag", "Lead", "NTile", "NthValue", "First", "Last"})
"""Ambiguous where the ORDER BY of their window has ties."""
RANKS = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist"})
"""The same for all ties, although Spark computes them over rows."""
COLLECTIONS = frozenset({"CollectList", "CollectSet"})
"""Fit when sorted at once: array_sort(collect_list(x))."""

FIXES = {
    "CollectList": "sort what is collected: array_sort({f}({x}))",
    "CollectSet": "sort what is collected: array_sort({f}({x}))",
    "First": "take the smallest or the largest: min({x}) or max({x})",
    "Last": "take the smallest or the largest: min({x}) or max({x})",
    "AnyValue": "take the smallest or the largest: min({x}) or max({x})",
    "MaxBy": "break ties by the value: max(struct(<ordering>, {x})).{x}",
    "MinBy": "break ties by the value: min(struct(<ordering>, {x})).{x}",
    "ListAgg": "order by the value: {f}({x}) WITHIN GROUP (ORDER BY {x})",
    "ApproximatePercentile": "use percentile({x}, ...), which is exact",
    "Mode": "count the values, and take the first of ORDER BY count DESC, value",
}
"""What to write instead of an aggregate that depends on the order of rows; `x` its argument."""

_ROW_WISE = (
    """Project Filter SubqueryAlias Union Generate WithCTE CTERelationDef CTERelationRef View"""
)
ROW_WISE = frozenset(_ROW_WISE.split())
"""Resolved plan nodes that handle each record alone and keep the order of records."""

CONSTRUCTS = {
    "Aggregate": AGGREGATION,
    "Join": JOIN,
    "LateralJoin": JOIN,
    "Distinct": "DISTINCT",
    "Deduplicate": "DISTINCT",
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
    "Sort": "ORDER BY",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Window": OVER,
    "Pivot": "PIVOT",
    "Expand": "windows that overlap, or grouping sets",
    "LocalRelation": "rows that stand in the query itself",
    "OneRowRelation": "rows that stand in the query itself",
    "Range": "rows that stand in the query itself",
}
"""What people call the plan nodes that are not row-wise."""
