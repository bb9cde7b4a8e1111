"""Spark's classes inside the JVM, each looked up once; for the modules of this folder only.

py4j asks the JVM for every part of a dotted name, each time that it is written: some milliseconds
for a query of one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

SQL = "org.apache.spark.sql."
CATALYST = SQL + "catalyst."
PLANS = CATALYST + "plans.logical."
EXPRESSIONS = CATALYST + "expressions."
CONSTRUCTORS = {
    PLANS + "Project": "Seq LogicalPlan",
    PLANS + "Expand": "Seq Seq LogicalPlan",
    PLANS + "Filter": "Expression LogicalPlan",
    PLANS + "LocalLimit": "Expression LogicalPlan",
    PLANS + "Aggregate": "Seq Seq LogicalPlan Option",
    PLANS + "Join": "LogicalPlan LogicalPlan JoinType Option JoinHint",
    PLANS + "LateralJoin": "LogicalPlan LateralSubquery JoinType Option",
    PLANS + "OneRowRelation": "",
    PLANS + "Generate": "Generator Seq boolean Option Seq LogicalPlan",
    EXPRESSIONS + "And": "Expression Expression",
    EXPRESSIONS + "Or": "Expression Expression",
    EXPRESSIONS + "IsNotNull": "Expression",
    EXPRESSIONS + "Alias": "Expression String ExprId Seq Option Seq",
    EXPRESSIONS + "EqualNullSafe": "Expression Expression",
    EXPRESSIONS + "GetStructField": "Expression int Option",
    EXPRESSIONS + "GreaterThan": "Expression Expression",
    EXPRESSIONS + "LessThanOrEqual": "Expression Expression",
    EXPRESSIONS + "Literal": "Object DataType",
    EXPRESSIONS + "CreateArray": "Seq",
    EXPRESSIONS + "CreateNamedStruct": "Seq",
    EXPRESSIONS + "Inline": "Expression",
    EXPRESSIONS + "UnixMicros": "Expression",
    EXPRESSIONS + "MicrosToTimestamp": "Expression",
    PLANS + "Repartition": "int boolean LogicalPlan",
    CATALYST + "TableIdentifier": "String",
    SQL + "execution.command.CreateViewCommand": "TableIdentifier Seq Option Option Map Option"
    " LogicalPlan boolean boolean ViewType ViewSchemaMode boolean Seq",
    SQL + "execution.arrow.ArrowBatchStreamWriter": "StructType OutputStream String boolean"
    " boolean",
    "java.util.ArrayList": "",
    "java.util.HashMap": "",
    "java.io.FileOutputStream": "String",
}
"""What is made by position: for each class, what its constructor takes."""


class Classes:
    """What is looked up in the JVM of a session."""

    def __init__(self, jvm: Any) -> None:
        from py4j.java_gateway import JavaClass

        load = jvm.java.lang.Class.forName

        def known(name: str) -> Any:
            return JavaClass(name, jvm._gateway_client)

        def companion(name: str) -> Any:
            return load(name + "$").getField("MODULE$").get(None)

        self._constructors = {name.rpartition(".")[2]: known(name) for name in CONSTRUCTORS}

        # Classes to tell whether something is one of them.
        self.subquery = load(EXPRESSIONS + "PlanExpression")
        self.replaceable = load(EXPRESSIONS + "RuntimeReplaceable")
        self.random = load(EXPRESSIONS + "Nondeterministic")
        self.inherits = load(EXPRESSIONS + "InheritAnalysisRules")
        self.plan = load(PLANS + "LogicalPlan")
        self.local = load(PLANS + "LocalRelation")
        self.union = load(PLANS + "Union")

        self.kinds: dict[str, Any] = {}
        """What was found out about classes, by name."""
        self.settings: dict[frozenset[tuple[str, str]], Any] = {}
        """Settings that sessions were given, as they are in the JVM."""

        self.sessions = companion(SQL + "classic.SparkSession")
        self.main = self.sessions.getDefaultSession().get()
        """The session that was made first."""
        self.datasets = companion(SQL + "classic.Dataset")
        self.skip = companion(SQL + "execution.CommandExecutionMode").SKIP()
        self.named_expressions = companion(EXPRESSIONS + "NamedExpression")
        self.written_cast = companion(EXPRESSIONS + "Cast").USER_SPECIFIED_CAST()
        self.inner = companion(CATALYST + "plans.Inner")
        self.no_hint = companion(PLANS + "JoinHint").NONE()
        self.local_view = companion(CATALYST + "analysis.LocalTempView")
        self.view_schema_mode = getattr(
            companion(SQL + "execution.command.CreateViewCommand"), "apply$default$11"
        )()
        self.batches = companion(SQL + "execution.arrow.ArrowConverters")
        self.literals = known(EXPRESSIONS + "Literal")
        inline = load(CATALYST + "optimizer.InlineCTE").getConstructors()[0]
        # Inline all; further flags, of which a release may have more, say what else to do.
        flags = [True] + [False] * (inline.getParameterCount() - 1)
        self.inline = known(CATALYST + "optimizer.InlineCTE")(*flags)
        self.replaced = known(CATALYST + "optimizer.ReplaceExpressions")
        self.python = known(SQL + "api.python.PythonSQLUtils")
        self.text = jvm.org.apache.spark.sql.types.DataTypes.StringType
        self.whole_number = jvm.org.apache.spark.sql.types.DataTypes.IntegerType

        self.just = jvm.scala.Option.apply
        self.nothing = jvm.scala.Option.empty()
        self.no_items = companion("scala.collection.immutable.Nil")
        self.no_properties = companion("scala.collection.immutable.Map").empty()
        self.sequence = jvm.org.apache.spark.api.python.PythonUtils.toSeq
        self.as_java = jvm.scala.jdk.javaapi.CollectionConverters.asJava
        self.wrapped = jvm.scala.runtime.ScalaRunTime.genericWrapArray
        self.scala_map = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap

    def new(self, name: str, *parts: Any) -> Any:
        """An object of a class in `CONSTRUCTORS`."""
        return self._constructors[name](*parts)


@lru_cache(maxsize=1)
def classes_in(jvm: Any) -> Classes:
    """The classes of `jvm`, that of a session."""
    return Classes(jvm)


def items(sequence: Any) -> Iterator[Any]:
    """Members of a Scala sequence."""
    for at in range(sequence.size()):
        yield sequence.apply(at)


def option(found: Any) -> Any:
    """What a Scala option holds, `None` for nothing."""
    return found.get() if found.isDefined() else None


def name_of(java: Any) -> str:
    """The name of the class of an object, without its package."""
    return str(_class_name(java._gateway_client)(java))


@lru_cache(maxsize=1)
def _class_name(client: Any) -> Any:
    from py4j.java_gateway import JavaClass

    return JavaClass("org.apache.spark.util.Utils", client).getFormattedClassName
