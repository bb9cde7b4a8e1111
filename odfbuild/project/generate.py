"""Write all that is generated: `python -m odfbuild.project.generate [--check] [FOLDER]`.

What `odfbuild.odf.generate` writes, and the schemas of odfbuild.yaml and of unit tests.
"""

from __future__ import annotations

import json
import sys

from odfbuild.odf.generate import main
from odfbuild.project.settings.content import project_schema
from odfbuild.project.unit_tests import unit_tests_schema


def schemas() -> dict[str, str]:
    """Text of the schemas of files of ours, by path."""
    found = {"Project": project_schema(), "UnitTests": unit_tests_schema()}
    return {
        f"schemas/{name}.json": json.dumps(schema, indent=2) + "\n"
        for name, schema in found.items()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "python -m odfbuild.project.generate", schemas()))
