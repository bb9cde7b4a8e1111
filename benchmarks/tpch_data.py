"""Tables and queries of TPC-H as roots and derivatives, and increments that change the tables.

Values are made by seed, of the kinds and shares that the specification of TPC-H asks for, so each
query has a result at small scales, too; they are not those of its own generator. The queries say
the same as theirs, with dates in place of parameters; those without LIMIT need no ORDER BY, and the
others name a column for each tie, since a result has to be well defined. Source: TPC Benchmark H,
revision 3.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MONEY = pa.decimal128(15, 2)
_CENT = pa.scalar(Decimal("0.01"))
_DAY_ONE = np.datetime64("1992-01-01")
_DAYS = 2_400
_NATIONS = (
    "ALGERIA ARGENTINA BRAZIL CANADA EGYPT ETHIOPIA FRANCE GERMANY INDIA INDONESIA IRAN IRAQ JAPAN"
    " JORDAN KENYA MOROCCO MOZAMBIQUE PERU CHINA ROMANIA SAUDI VIETNAM RUSSIA KINGDOM STATES"
)
_REGION_OF = (0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1)
_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
_INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
_COLORS = ("almond", "forest", "green", "ivory", "lemon", "navy", "plum", "rose")
_TYPES = [
    f"{a} {b} {c}"
    for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for b in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for c in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
]
_CONTAINERS = [
    f"{a} {b}" for a in ("SM", "LG", "MED", "JUMBO", "WRAP") for b in ("CASE", "BOX", "BAG", "PACK")
]
KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}


class Tables:
    """What the tables amount to (`now`), at a scale of the benchmark."""

    def __init__(self, scale: float, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._suppliers = max(20, int(10_000 * scale))
        self._customers = max(50, int(150_000 * scale))
        self._parts = max(50, int(200_000 * scale))
        self.orders_at_first = int(1_500_000 * scale)
        self._next_order = 0
        nations = pa.array(_NATIONS.split())
        self.now = {
            "region": pa.table({"r_regionkey": range(5), "r_name": _REGIONS}),
            "nation": pa.table(
                {"n_nationkey": range(25), "n_name": nations, "n_regionkey": _REGION_OF}
            ),
            "supplier": self._supplier(),
            "customer": self._customer(),
            "part": self._part(),
            "partsupp": self._partsupp(),
        }
        self.now |= self._orders(self.orders_at_first)

    # --- Tables as they are at first ---

    def _supplier(self) -> pa.Table:
        count = self._suppliers
        nation = self._chance.integers(0, 25, count)
        comments = ["quick deliveries", "Customer many Complaints", "careful packages"]
        return pa.table(
            {
                "s_suppkey": np.arange(count),
                "s_name": [f"Supplier#{n:09}" for n in range(count)],
                "s_address": [f"street {n % 97}" for n in range(count)],
                "s_nationkey": nation,
                "s_phone": self._phones(nation),
                "s_acctbal": self._money(-999, 9999, count),
                "s_comment": self._one_of(comments, count),
            }
        )

    def _customer(self) -> pa.Table:
        count = self._customers
        nation = self._chance.integers(0, 25, count)
        return pa.table(
            {
                "c_custkey": np.arange(count),
                "c_name": [f"Customer#{n:09}" for n in range(count)],
                "c_address": [f"street {n % 89}" for n in range(count)],
                "c_nationkey": nation,
                "c_phone": self._phones(nation),
                "c_acctbal": self._money(-999, 9999, count),
                "c_mktsegment": self._one_of(_SEGMENTS, count),
                "c_comment": self._one_of(["regular ideas", "even deposits"], count),
            }
        )

    def _part(self) -> pa.Table:
        count = self._parts
        maker = self._chance.integers(1, 6, count)
        brand = self._chance.integers(1, 6, count)
        two = zip(self._one_of(_COLORS, count), self._one_of(_COLORS, count), strict=True)
        return pa.table(
            {
                "p_partkey": np.arange(count),
                "p_name": [f"{a} {b}" for a, b in two],
                "p_mfgr": [f"Manufacturer#{n}" for n in maker],
                "p_brand": [f"Brand#{m}{b}" for m, b in zip(maker, brand, strict=True)],
                "p_type": self._one_of(_TYPES, count),
                "p_size": self._chance.integers(1, 51, count),
                "p_container": self._one_of(_CONTAINERS, count),
                "p_retailprice": self._money(900, 2000, count),
            }
        )

    def _partsupp(self) -> pa.Table:
        part = np.repeat(np.arange(self._parts), 4)
        count = len(part)
        return pa.table(
            {
                "ps_partkey": part,
                "ps_suppkey": self._supplier_of(part, np.tile(np.arange(4), self._parts)),
                "ps_availqty": self._chance.integers(1, 9999, count),
                "ps_supplycost": self._money(1, 1000, count),
            }
        )

    def _supplier_of(self, part: Any, which: Any) -> Any:
        """One of the four suppliers of a part."""
        return (part + which * (self._suppliers // 4)) % self._suppliers

    def _orders(self, count: int) -> dict[str, pa.Table]:
        chance = self._chance
        keys = np.arange(self._next_order, self._next_order + count)
        self._next_order += count
        ordered = chance.integers(0, _DAYS, count)
        # A third of the customers never orders anything.
        customer = chance.integers(0, self._customers, count) // 3 * 3 + chance.integers(
            0, 2, count
        )
        lines = chance.integers(1, 8, count)
        order = np.repeat(keys, lines)
        number = np.concatenate([np.arange(1, n + 1) for n in lines])
        rows = len(order)
        since = np.repeat(ordered, lines)
        shipped = since + chance.integers(1, 122, rows)
        received = shipped + chance.integers(1, 31, rows)
        part = chance.integers(0, self._parts, rows)
        is_old = received < 1_263
        status = np.where(is_old, np.where(chance.random(rows) < 0.5, "R", "A"), "N")
        lineitem = pa.table(
            {
                "l_orderkey": order,
                "l_linenumber": number,
                "l_partkey": part,
                "l_suppkey": self._supplier_of(part, chance.integers(0, 4, rows)),
                "l_quantity": _decimals(chance.integers(1, 51, rows) * 100),
                "l_extendedprice": self._money(900, 100_000, rows),
                "l_discount": _decimals(chance.integers(0, 11, rows)),
                "l_tax": _decimals(chance.integers(0, 9, rows)),
                "l_returnflag": status,
                "l_linestatus": np.where(shipped > 1_263, "O", "F"),
                "l_shipdate": _dates(shipped),
                "l_commitdate": _dates(since + chance.integers(30, 91, rows)),
                "l_receiptdate": _dates(received),
                "l_shipinstruct": self._one_of(_INSTRUCTIONS, rows),
                "l_shipmode": self._one_of(_MODES, rows),
            }
        )
        orders = pa.table(
            {
                "o_orderkey": keys,
                "o_custkey": np.minimum(customer, self._customers - 1),
                "o_orderstatus": self._one_of(["F", "O", "P"], count),
                "o_totalprice": self._money(900, 400_000, count),
                "o_orderdate": _dates(ordered),
                "o_orderpriority": self._one_of(_PRIORITIES, count),
                "o_shippriority": np.zeros(count, np.int64),
                "o_comment": self._one_of(["quick", "special urgent requests", "pending"], count),
            }
        )
        return {"orders": orders, "lineitem": lineitem}

    # --- Increments ---

    def increment(self, number: int, share: float) -> dict[str, tuple[pa.Table, pa.Table]]:
        """Change a `share` of the orders, and some of the rest; by table, new and deleted rows.

        A third of the changed orders each are new, deleted with their lines, or get other lines.
        Every third increment changes phones of customers alone, beside the orders.
        """
        count = max(2, int(self.orders_at_first * share / 3))
        made = self._orders(count)
        orders, lines = self.now["orders"], self.now["lineitem"]
        chosen = self._chance.choice(len(orders), 2 * count, replace=False)
        keys = orders["o_orderkey"].to_numpy()[chosen]
        gone, changed = keys[:count], keys[count:]
        lost = lines.filter(_is_in(lines["l_orderkey"], gone))
        dearer = lines.filter(_is_in(lines["l_orderkey"], changed))
        price = self._money(900, 100_000, len(dearer))
        at = dearer.schema.get_field_index("l_extendedprice")
        dearer = dearer.set_column(at, "l_extendedprice", price)
        changes = {
            "orders": (made["orders"], orders.take(chosen[:count])),
            "lineitem": (pa.concat_tables([made["lineitem"], dearer]), lost),
            "customer": self._corrected("customer", "c_phone", count),
        }
        if number % 3:
            changes["customer"] = self._corrected("customer", "c_acctbal", count)
            changes["supplier"] = self._corrected("supplier", "s_acctbal", 2)
            changes["part"] = self._corrected("part", "p_retailprice", count // 2)
            changes["partsupp"] = self._corrected("partsupp", "ps_supplycost", count)
        for name, (new, deleted) in changes.items():
            self.now[name] = _changed(self.now[name], new, deleted, KEYS[name])
        return changes

    def _corrected(self, name: str, column: str, count: int) -> tuple[pa.Table, pa.Table]:
        table = self.now[name]
        rows = table.take(self._chance.choice(len(table), min(count, len(table)), replace=False))
        at = rows.schema.get_field_index(column)
        if column.endswith("phone"):
            prefix = [each[:2] for each in rows[column].to_pylist()]
            ends = self._chance.integers(0, 10_000_000, len(rows))
            values: Any = [f"{a}-{b:07}" for a, b in zip(prefix, ends, strict=True)]
        else:
            values = self._money(-999, 9_999, len(rows))
        return rows.set_column(at, column, pa.array(values)), table.slice(0, 0)

    def _money(self, least: int, most: int, count: int) -> pa.Array:
        return _decimals(self._chance.integers(least * 100, most * 100, count))

    def _phones(self, nation: Any) -> list[str]:
        ends = self._chance.integers(0, 10_000_000, len(nation))
        return [f"{n + 10}-{end:07}" for n, end in zip(nation, ends, strict=True)]

    def _one_of(self, values: Sequence[str], count: int) -> Any:
        return np.array(values)[self._chance.integers(0, len(values), count)]


def _decimals(cents: Any) -> pa.Array:
    return pc.multiply(pa.array(cents).cast(pa.decimal128(19, 0)), _CENT).cast(MONEY)


def _dates(days: Any) -> pa.Array:
    return pa.array(_DAY_ONE + days.astype("timedelta64[D]"))


def _is_in(column: pa.ChunkedArray, values: Any) -> Any:
    return pc.is_in(column, pa.array(values))


def _changed(now: pa.Table, new: pa.Table, gone: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows without those of these keys, and the new ones."""
    touched = pa.concat_tables([new.select(key), gone.select(key)])
    kept = now.join(touched, list(key), join_type="left anti").select(now.column_names)
    return pa.concat_tables([kept.cast(now.schema), new.cast(now.schema)])


def queries(scale: float) -> dict[str, tuple[str, str]]:
    """By name, the tables that a query reads, and its text."""
    return {
        name: (tables, text.format(share=f"{0.0001 / scale:.10f}", time=_TIME))
        for name, tables, text in _QUERIES
    }


_TIME = "TIMESTAMP '2024-01-01 00:00:00' AS event_time"
_QUERIES = [
    (
        "q01",
        "lineitem",
        "SELECT {time}, l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty,"
        " SUM(l_extendedprice) AS sum_base, SUM(l_extendedprice * (1 - l_discount)) AS sum_disc,"
        " SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, AVG(l_quantity) AS"
        " avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS n"
        " FROM lineitem WHERE l_shipdate <= DATE '1998-05-02' GROUP BY l_returnflag, l_linestatus",
    ),
    (
        "q02",
        "part supplier partsupp nation region",
        "SELECT {time}, s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment"
        " FROM part, supplier, partsupp, nation, region WHERE p_partkey = ps_partkey AND s_suppkey"
        " = ps_suppkey AND p_size = 15 AND p_type LIKE '%BRASS' AND s_nationkey = n_nationkey AND"
        " n_regionkey = r_regionkey AND r_name = 'EUROPE' AND ps_supplycost = (SELECT"
        " MIN(ps_supplycost) FROM partsupp, supplier, nation, region WHERE p_partkey = ps_partkey"
        " AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey"
        " AND r_name = 'EUROPE') ORDER BY s_acctbal DESC, n_name, s_name, p_partkey, p_mfgr,"
        " s_address, s_phone, s_comment LIMIT 100",
    ),
    (
        "q03",
        "customer orders lineitem",
        "SELECT {time}, l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue,"
        " o_orderdate, o_shippriority FROM customer, orders, lineitem WHERE c_mktsegment ="
        " 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < DATE"
        " '1995-03-15' AND l_shipdate > DATE '1995-03-15' GROUP BY l_orderkey, o_orderdate,"
        " o_shippriority ORDER BY revenue DESC, o_orderdate, l_orderkey, o_shippriority LIMIT 10",
    ),
    (
        "q04",
        "orders lineitem",
        "SELECT {time}, o_orderpriority, COUNT(*) AS n FROM orders WHERE o_orderdate >= DATE"
        " '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND EXISTS (SELECT 1 FROM lineitem WHERE"
        " l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority",
    ),
    (
        "q05",
        "customer orders lineitem supplier nation region",
        "SELECT {time}, n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM customer,"
        " orders, lineitem, supplier, nation, region WHERE c_custkey = o_custkey AND l_orderkey ="
        " o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey ="
        " n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND o_orderdate >= DATE"
        " '1994-01-01' AND o_orderdate < DATE '1995-01-01' GROUP BY n_name",
    ),
    (
        "q06",
        "lineitem",
        "SELECT {time}, SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate"
        " >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND"
        " 0.07 AND l_quantity < 24",
    ),
    (
        "q07",
        "supplier lineitem orders customer nation",
        "SELECT {time}, supp_nation, cust_nation, l_year, SUM(volume) AS revenue FROM (SELECT"
        " n1.n_name AS supp_nation, n2.n_name AS cust_nation, EXTRACT(YEAR FROM l_shipdate) AS"
        " l_year, l_extendedprice * (1 - l_discount) AS volume FROM supplier, lineitem, orders,"
        " customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey"
        " AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey AND c_nationkey ="
        " n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name ="
        " 'GERMANY' AND n2.n_name = 'FRANCE')) AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE"
        " '1996-12-31') AS shipping GROUP BY supp_nation, cust_nation, l_year",
    ),
    (
        "q08",
        "part supplier lineitem orders customer nation region",
        "SELECT {time}, o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) /"
        " SUM(volume) AS mkt_share FROM (SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year,"
        " l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation FROM part, supplier,"
        " lineitem, orders, customer, nation n1, nation n2, region WHERE p_partkey = l_partkey AND"
        " s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey AND"
        " c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA' AND"
        " s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE"
        " '1996-12-31' AND p_type LIKE '%STEEL') AS all_nations GROUP BY o_year",
    ),
    (
        "q09",
        "part supplier lineitem partsupp orders nation",
        "SELECT {time}, nation, o_year, SUM(amount) AS profit FROM (SELECT n_name AS nation,"
        " EXTRACT(YEAR FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) -"
        " ps_supplycost * l_quantity AS amount FROM part, supplier, lineitem, partsupp, orders,"
        " nation WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey"
        " AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND"
        " p_name LIKE '%green%') AS profits GROUP BY nation, o_year",
    ),
    (
        "q10",
        "customer orders lineitem nation",
        "SELECT {time}, c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue,"
        " c_acctbal, n_name, c_address, c_phone, c_comment FROM customer, orders, lineitem, nation"
        " WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE"
        " '1993-10-01' AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' AND c_nationkey ="
        " n_nationkey GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment"
        " ORDER BY revenue DESC, c_custkey, c_name, c_acctbal, n_name, c_address, c_phone,"
        " c_comment LIMIT 20",
    ),
    (
        "q11",
        "partsupp supplier nation",
        "SELECT {time}, ps_partkey, SUM(ps_supplycost * ps_availqty) AS value FROM partsupp,"
        " supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name ="
        " 'GERMANY' GROUP BY ps_partkey HAVING SUM(ps_supplycost * ps_availqty) > (SELECT"
        " SUM(ps_supplycost * ps_availqty) * {share} FROM partsupp, supplier, nation WHERE"
        " ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')",
    ),
    (
        "q12",
        "orders lineitem",
        "SELECT {time}, l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority ="
        " '2-HIGH' THEN 1 ELSE 0 END) AS high, SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND"
        " o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low FROM orders, lineitem WHERE"
        " o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate <"
        " l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' AND"
        " l_receiptdate < DATE '1995-01-01' GROUP BY l_shipmode",
    ),
    (
        "q13",
        "customer orders",
        "SELECT {time}, c_count, COUNT(*) AS custdist FROM (SELECT c_custkey, COUNT(o_orderkey) AS"
        " c_count FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE"
        " '%special%requests%' GROUP BY c_custkey) AS c_orders GROUP BY c_count",
    ),
    (
        "q14",
        "lineitem part",
        "SELECT {time}, 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 -"
        " l_discount) ELSE 0 END) / SUM(l_extendedprice * (1 - l_discount)) AS promo FROM lineitem,"
        " part WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate <"
        " DATE '1995-10-01'",
    ),
    (
        "q15",
        "lineitem supplier",
        "WITH revenue AS (SELECT l_suppkey AS supplier_no, SUM(l_extendedprice * (1 - l_discount))"
        " AS total FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE"
        " '1996-04-01' GROUP BY l_suppkey) SELECT {time}, s_suppkey, s_name, s_address, s_phone,"
        " total FROM supplier, revenue WHERE s_suppkey = supplier_no AND total = (SELECT MAX(total)"
        " FROM revenue)",
    ),
    (
        "q16",
        "partsupp part supplier",
        "SELECT {time}, p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS n FROM partsupp,"
        " part WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM"
        " POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9) AND ps_suppkey NOT IN (SELECT"
        " s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%') GROUP BY p_brand,"
        " p_type, p_size",
    ),
    (
        "q17",
        "lineitem part",
        "SELECT {time}, SUM(l_extendedprice) / 7.0 AS yearly FROM lineitem, part WHERE p_partkey ="
        " l_partkey AND p_brand = 'Brand#23' AND p_container LIKE 'MED%' AND l_quantity < (SELECT"
        " 0.2 * AVG(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)",
    ),
    (
        "q18",
        "customer orders lineitem",
        "SELECT {time}, c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity)"
        " AS quantity FROM customer, orders, lineitem WHERE o_orderkey IN (SELECT l_orderkey FROM"
        " lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 250) AND c_custkey = o_custkey AND"
        " o_orderkey = l_orderkey GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice"
        " ORDER BY o_totalprice DESC, o_orderdate, c_name, c_custkey, o_orderkey, quantity LIMIT"
        " 100",
    ),
    (
        "q19",
        "lineitem part",
        "SELECT {time}, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part"
        " WHERE p_partkey = l_partkey AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct ="
        " 'DELIVER IN PERSON' AND ((p_brand = 'Brand#12' AND p_container LIKE 'SM%' AND l_quantity"
        " BETWEEN 1 AND 11 AND p_size BETWEEN 1 AND 5) OR (p_brand = 'Brand#23' AND p_container"
        " LIKE 'MED%' AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10) OR (p_brand ="
        " 'Brand#34' AND p_container LIKE 'LG%' AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN"
        " 1 AND 15))",
    ),
    (
        "q20",
        "supplier nation partsupp part lineitem",
        "SELECT {time}, s_name, s_address FROM supplier, nation WHERE s_suppkey IN (SELECT"
        " ps_suppkey FROM partsupp WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name"
        " LIKE 'forest%') AND ps_availqty > (SELECT 0.5 * SUM(l_quantity) FROM lineitem WHERE"
        " l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= DATE '1994-01-01' AND"
        " l_shipdate < DATE '1995-01-01')) AND s_nationkey = n_nationkey AND n_name = 'CANADA'",
    ),
    (
        "q21",
        "supplier lineitem orders nation",
        "SELECT {time}, s_name, COUNT(*) AS numwait FROM supplier, lineitem l1, orders, nation"
        " WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND"
        " l1.l_receiptdate > l1.l_commitdate AND EXISTS (SELECT 1 FROM lineitem l2 WHERE"
        " l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey) AND NOT EXISTS (SELECT 1"
        " FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey AND"
        " l3.l_receiptdate > l3.l_commitdate) AND s_nationkey = n_nationkey AND n_name = 'SAUDI'"
        " GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100",
    ),
    (
        "q22",
        "customer orders",
        "SELECT {time}, cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM (SELECT"
        " substring(c_phone, 1, 2) AS cntrycode, c_acctbal FROM customer WHERE substring(c_phone,"
        " 1, 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > (SELECT"
        " AVG(c_acctbal) FROM customer WHERE c_acctbal > 0.00 AND substring(c_phone, 1, 2) IN"
        " ('13', '31', '23', '29', '30', '18', '17')) AND NOT EXISTS (SELECT 1 FROM orders WHERE"
        " o_custkey = c_custkey)) AS custsale GROUP BY cntrycode",
    ),
]
