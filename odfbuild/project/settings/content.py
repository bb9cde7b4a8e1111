"""What odfbuild.yaml may hold."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from odfbuild.declared_settings import Fits, document_schema, setting
from odfbuild.engine.settings import EngineSettings
from odfbuild.ingest.settings import IngestSettings
from odfbuild.project.settings.by_name import Name, Patterns
from odfbuild.project.settings.checks import Declared
from odfbuild.project.settings.describing import Described
from odfbuild.project.settings.freshness import Freshness, age, parse_age
from odfbuild.project.settings.lint import Levels
from odfbuild.project.settings.owners import Ownership
from odfbuild.project.settings.personal import PersonalEntry
from odfbuild.project.settings.policy import Policy
from odfbuild.project.settings.retention import Retention
from odfbuild.project.settings.sharing import External, Publishing, Repositories
from odfbuild.project.settings.showing import Shown
from odfbuild.project.settings.tables import TableSettings
from odfbuild.project.settings.watermarks import WatermarkRule
from odfbuild.sql.translate.named import Configured
from odfbuild.values import Value

Storage = Annotated[
    str,
    Fits(
        pattern=r"^(s3|gs|az|abfs|file)://.|^[^:]+$",
        examples=["s3://bucket/prefix", "../data"],
        description="Storage of the data for all clones: s3://bucket/prefix, gs:, az:, or a folder",
    ),
]

ChainPlace = Annotated[
    Literal["git", "storage"],
    Fits(
        description="Where blocks of chains are: in Git with the heads, or in the `storage` "
        "(default: git); `odfbuild chains move` moves them",
    ),
]

# What stands behind `$` refuses the line break that it lets pass in Python.
PROJECT_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$(?!\n)"
ProjectName = Annotated[
    str,
    Fits(
        pattern=PROJECT_NAME,
        examples=["flights", "flights-2026"],
        description="Name of the project: letters, digits, `.`, `_` and `-`, at most 100",
    ),
]


class Environment(Value, kw_only=True):
    """Where an environment keeps its chains and data, if not where the others do."""

    state: str | None = setting(None, "Folder of its chains (default: chains-NAME)")
    storage: Storage | None = setting(None)
    chains: ChainPlace | None = setting(None)


class BranchSettings(Value, kw_only=True):
    """Settings of branches."""

    keep: Annotated[timedelta, age(parse_age)] = setting(
        timedelta(days=14),
        "How long `gc` keeps closed branches (promoted, or their Git branch is merged or gone)",
    )


class Contracted(Value):
    """Datasets whose name matches keep to the contract in a file; all entries that match count."""

    match: Patterns = setting()
    file: Name = setting(about="File of the contract, in the form of ODCS, from the project folder")


class Portal(Value):
    """The root dataset `name` gets all records of the dataset `of`, and tells nobody of that."""

    name: Name = setting(about="Name of a root dataset that is defined without a source")
    of: Name = setting(about="Name of the dataset whose records it gets")


class Content(Value, kw_only=True):
    """The settings of a project."""

    name: ProjectName = setting()
    datasets_folder: str = setting("datasets", "Folder of the definitions", key="datasets")
    state_folder: str = setting(
        "chains", "Folder of the metadata chains and their data", key="state"
    )
    storage: Storage | None = setting(None)
    chains: ChainPlace = setting("git")
    vars: Mapping[str, Any] = setting({}, "Values that templates can use")
    ingest: IngestSettings = setting(IngestSettings(), "How sources are fetched and prepared")
    engine: EngineSettings = setting(EngineSettings(), "Where and how Spark runs")
    selectors: Mapping[str, Name] = setting({}, "Named selections, for `--selector NAME`")
    environments: Mapping[str, Environment] = setting(
        {}, "Environments and where each keeps its chains"
    )
    moved: Mapping[str, Name] = setting({}, "New names of renamed datasets, by their old ones")
    policies: tuple[Policy, ...] = setting(
        (), "What may happen to datasets, by name; of several that match, the last one wins"
    )
    engines: Mapping[str, Configured] = setting(
        {}, "What computes queries, by their engine: spark, or a program that is an engine"
    )
    checks: tuple[Declared, ...] = setting(
        (), "Conditions on records before they are committed, by names of datasets"
    )
    contracts: tuple[Contracted, ...] = setting(
        (), "Data contracts (ODCS) that datasets keep to, by names of datasets"
    )
    freshness: tuple[Freshness, ...] = setting(
        (), "How old datasets may be; of several entries that match, the last one wins"
    )
    watermarks: tuple[WatermarkRule, ...] = setting(
        (), "How watermarks of root datasets move; of several that match, the last one wins"
    )
    owners: tuple[Ownership, ...] = setting(
        (), "Owners of datasets; of several entries that match, the last one wins"
    )
    personal: tuple[PersonalEntry, ...] = setting(
        (), "Columns with values about persons, which are encrypted; all entries that match count"
    )
    descriptions: tuple[Described, ...] = setting(
        (), "Descriptions of columns; of several entries that match, the last one wins"
    )
    show: tuple[Shown, ...] = setting(
        (),
        "Datasets whose records may appear in sites, plans and comments (default: none); "
        "of several entries that match, the last one wins",
    )
    retain: tuple[Retention, ...] = setting(
        (),
        "How long records are kept (default: permanently); apply withdraws older ones where "
        "that is allowed by name; of several entries that match, the last one wins",
    )
    repositories: Repositories = setting({}, "Repositories of datasets, by name")
    external: External = setting(
        {}, "Datasets of others, such as acme/org.example.prices, by their names here"
    )
    publish: tuple[Publishing, ...] = setting(
        (), "What apply pushes to repositories after its commits, by names of datasets"
    )
    portals: tuple[Portal, ...] = setting(
        (), "Datasets that are published as roots of their own, without inputs and query"
    )
    tables: tuple[TableSettings, ...] = setting(
        (), "Tables that apply publishes from datasets, for readers without odfbuild"
    )
    branches: BranchSettings = setting(BranchSettings(), "How long branches are kept")
    lint: Levels = setting({}, "Levels of rules for `odfbuild lint` (default: warn)")


class ProjectFile(Value, kw_only=True):
    """All of odfbuild.yaml."""

    kind: Literal["Project"] = setting()
    version: Literal[1] = setting()
    content: Content = setting()


def project_schema() -> dict[str, Any]:
    """The JSON Schema of odfbuild.yaml."""
    return document_schema("odfbuild project", ProjectFile)
