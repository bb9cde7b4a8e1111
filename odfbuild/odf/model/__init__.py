"""The objects of the specification: the one source of truth for every field.

Each class is one object of the metadata reference (0.36, with what 0.37 and 0.38 added on the
wire). Fields stand in the order of their FlatBuffers slots; the annotation gives the wire type:

    str, bool                a string, a bool
    bytes                    a [ubyte] vector, base64 in YAML
    Multihash, DatasetId     a [ubyte] vector in binary form, text in YAML
    DatasetRef               a string
    Timestamp                the 16-byte struct, RFC 3339 in YAML
    U64, U32, I32, I16       a scalar of that width
    an `Enum`                a scalar (int32; `TimeUnit` int16), numbered in order of definition
    tuple[X, ...]            a vector
    A | B | …                a union: tag (one-based, in this order) and value, two slots
    X | None                 optional: absent is not the same as the default

`model.record` declares objects; each module holds those of one part of the specification, and all
of them are names of this one. Messages of engines stand apart in `model.messages`, which nothing
here loads.

A scalar that is not optional is left out of the bytes when it equals 0. `open_map` marks the one
free-form object, kept as JSON text on the wire. The YAML form names fields in camelCase; members of
a union carry `kind`. Sources: metadata reference; `opendatafabric.fbs`.
"""

from __future__ import annotations

from odfbuild.odf.model.data import *  # noqa: F403
from odfbuild.odf.model.data_schema import *  # noqa: F403
from odfbuild.odf.model.events import *  # noqa: F403
from odfbuild.odf.model.fetch import *  # noqa: F403
from odfbuild.odf.model.manifests import *  # noqa: F403
from odfbuild.odf.model.merge import *  # noqa: F403
from odfbuild.odf.model.prepare import *  # noqa: F403
from odfbuild.odf.model.read import *  # noqa: F403
from odfbuild.odf.model.record import *  # noqa: F403
from odfbuild.odf.model.transform import *  # noqa: F403
