"""Spark's classes inside the JVM, each looked up once.

py4j asks the JVM for every part of a dotted name, each time that it is written: some milliseconds
for a query of one line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALYST = "org.apache.spark.sql.catalyst."
_PLANS = _CATALYST + "plans.logical."
_EXPRESSIONS = _CATALYST + "expressions."


class Classes:
    """Attributes in lower case are values in the JVM, the others classes to make values of."""

    def __init__(self, jvm: Any) -> None:
        from py4j.java_gateway import JavaClass

        load = jvm.java.lang.Class.forName

        def known(name: str) -> Any:
            return JavaClass(name, jvm._gateway_client)

        def companion(name: str) -> Any:
            return load(name + "$").getField("MODULE$").get(None)

        # Classes to tell whether something is one of them.
        self.subquery = load(_EXPRESSIONS + "PlanExpression")
        self.replaceable = load(_EXPRESSIONS + "RuntimeReplaceable")
        self.random = load(_EXPRESSIONS + "Nondeterministic")
        self.plan = load(_PLANS + "LogicalPlan")
        self.inherits = load(_EXPRESSIONS + "InheritAnalysisRules")

        self.kinds: dict[str, Any] = {}
        """What was found out about classes, by name."""

        self._sessions = companion("org.apache.spark.sql.classic.SparkSession")
        self._settings: dict[frozenset[tuple[str, str]], Any] = {}
        self.skip = companion("org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
        self.datasets = companion("org.apache.spark.sql.classic.Dataset")
        self.named_expressions = companion(_EXPRESSIONS + "NamedExpression")
        self.inner = companion(_CATALYST + "plans.Inner")
        self.no_hint = companion(_PLANS + "JoinHint").NONE()
        self.written_cast = companion(_EXPRESSIONS + "Cast").USER_SPECIFIED_CAST()
        self.just = jvm.scala.Option.apply
        self.nothing = jvm.scala.Option.empty()
        self.g = self.just("g")
        self.text = jvm.org.apache.spark.sql.types.DataTypes.StringType
        self.whole_number = jvm.org.apache.spark.sql.types.DataTypes.IntegerType
        self.local = load(_PLANS + "LocalRelation")
        self.converters = companion("org.apache.spark.sql.execution.arrow.ArrowConverters")
        self.no_items = companion("scala.collection.immutable.Nil")
        self.no_properties = companion("scala.collection.immutable.Map").empty()
        self.local_view = companion(_CATALYST + "analysis.LocalTempView")
        self.view_schema_mode = getattr(
            companion("org.apache.spark.sql.execution.command.CreateViewCommand"),
            "apply$default$11",
        )()
        self.sequence = jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self.scala_map = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap

        self._classes(known)

    def _classes(self, known: Callable[[str], Any]) -> None:
        self.Project = known(_PLANS + "Project")
        self.Expand = known(_PLANS + "Expand")
        self.Filter = known(_PLANS + "Filter")
        self.LocalLimit = known(_PLANS + "LocalLimit")
        self.Aggregate = known(_PLANS + "Aggregate")
        self.Join = known(_PLANS + "Join")
        self.LateralJoin = known(_PLANS + "LateralJoin")
        self.OneRowRelation = known(_PLANS + "OneRowRelation")
        self.ReplaceExpressions = known(_CATALYST + "optimizer.ReplaceExpressions")
        self.InlineCTE = known(_CATALYST + "optimizer.InlineCTE")
        self.And = known(_EXPRESSIONS + "And")
        self.Or = known(_EXPRESSIONS + "Or")
        self.IsNotNull = known(_EXPRESSIONS + "IsNotNull")
        self.Alias = known(_EXPRESSIONS + "Alias")
        self.EqualNullSafe = known(_EXPRESSIONS + "EqualNullSafe")
        self.GetStructField = known(_EXPRESSIONS + "GetStructField")
        self.GreaterThan = known(_EXPRESSIONS + "GreaterThan")
        self.LessThanOrEqual = known(_EXPRESSIONS + "LessThanOrEqual")
        self.Literal = known(_EXPRESSIONS + "Literal")
        self.Generate = known(_PLANS + "Generate")
        self.CreateArray = known(_EXPRESSIONS + "CreateArray")
        self.CreateNamedStruct = known(_EXPRESSIONS + "CreateNamedStruct")
        self.Inline = known(_EXPRESSIONS + "Inline")
        self.UnixMicros = known(_EXPRESSIONS + "UnixMicros")
        self.MicrosToTimestamp = known(_EXPRESSIONS + "MicrosToTimestamp")
        self.ArrayList = known("java.util.ArrayList")
        self.Arrow = known("org.apache.spark.sql.api.python.PythonSQLUtils")
        self.ArrowStream = known("org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter")
        self.FileOutputStream = known("java.io.FileOutputStream")
        self.HashMap = known("java.util.HashMap")
        self.TableIdentifier = known(_CATALYST + "TableIdentifier")
        self.CreateViewCommand = known("org.apache.spark.sql.execution.command.CreateViewCommand")

    def set(self, spark: SparkSession, settings: Mapping[str, str]) -> None:
        """Set up a session, in one question to the JVM."""
        key = frozenset(settings.items())
        known = self._settings.get(key)
        if known is None:
            known = self.HashMap()
            for name, value in settings.items():
                known.put(name, value)
            self._settings[key] = known
        self._sessions.applyModifiableSettings(spark._jsparkSession, known)


@lru_cache(maxsize=1)
def classes_in(jvm: Any) -> Classes:
    """The classes of `jvm`, that of a session."""
    return Classes(jvm)
