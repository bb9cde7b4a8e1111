"""What a project shares with others: `repositories`, `external` and `publish` of odfbuild.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from odfbuild.declared_settings import Fits, setting
from odfbuild.project.settings.by_name import Name, Patterns
from odfbuild.values import Value

Address = Annotated[
    str,
    Fits(
        pattern=r"^((s3|gs|az|abfs|file|https?|odf\+https?)://.|[^:]+$)",
        examples=["s3://bucket/prefix", "https://data.example.org/", "../published"],
        description="Address of a repository: a folder, s3://, gs://, az://, http(s)://, "
        "odf+http(s)://",
    ),
]


class RepositorySettings(Value, kw_only=True):
    """A repository by its name: where it is, and whom it trusts."""

    url: Address = setting()
    token: str | None = setting(
        None, "Access token, such as ${{ env.ACME_TOKEN }}; sent only to the host of `url`"
    )
    signatures: Literal["required", "accepted"] = setting(
        "accepted", "`required`: heads without a signature are refused; signed ones are checked"
    )
    visibility: Literal["private", "public"] = setting(
        "private", "Of datasets that a push creates on a server of the Smart Transfer Protocol"
    )
    passports: bool = setting(
        False, "A push that brings blocks also writes the passports of the dataset into its folder"
    )


class Publishing(Value):
    """Datasets whose name matches are pushed to a repository after each apply."""

    match: Patterns = setting()
    to: Name = setting(about="Name of a repository")


Repositories = Mapping[str, RepositorySettings]
External = Mapping[str, Name]
