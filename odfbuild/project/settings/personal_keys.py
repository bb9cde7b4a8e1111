"""What the owner of a machine says of personal data: where the keys are, who may see values.

A setting of the machine, never of a project: whoever changes a project must not get at the keys.
"""

from __future__ import annotations

from typing import Annotated

from odfbuild.declared_settings import Fits, setting
from odfbuild.store.personal import Hiding
from odfbuild.values import Value

KeyPlace = Annotated[
    str,
    Fits(
        pattern=r"^(s3|gs|az|abfs|file)://.|^[^:]+$",
        examples=["~/.config/odfbuild/subject-keys", "s3://bucket/subject-keys"],
        description="Keys of subjects: a folder, or s3://bucket/prefix, gs:, az:, abfs:",
    ),
]
WrappingKey = Annotated[
    str,
    Fits(
        pattern=r"^(env|kms):.|^[^:]+$",
        examples=["~/.config/odfbuild/wrapping-key", "env:ODFBUILD_WRAPPING_KEY", "kms:alias/pii"],
        description="What encrypts these keys: a file, env:VARIABLE, or kms:KEY of an AWS KMS",
    ),
]


class PersonalKeys(Value, kw_only=True):
    """The keys of subjects on this machine, and who may see the values that they encrypt."""

    keys: KeyPlace | None = setting(None)
    wrapping: WrappingKey | None = setting(None)
    show: bool = setting(
        False, "Whether commands and Python show values of personal columns to people here"
    )
    publish: bool = setting(
        False, "Whether published tables, sites and comments have values of personal columns"
    )
    hide: Hiding = setting(
        "pseudonym",
        "What stands in place of a value that is not shown: `pseudonym`, the same for equal "
        "values of a person, or `empty`",
    )
