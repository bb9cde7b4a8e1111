"""Write all that is generated: `python -m odfbuild.project.generate [--check] [FOLDER]`.

What `odfbuild.odf.generate` writes, and `schemas/Project.json` from the settings of odfbuild.yaml.
"""

from __future__ import annotations

import json
import sys

from odfbuild.odf.generate import main
from odfbuild.project.settings.content import project_schema


def schemas() -> dict[str, str]:
    """Text of the schemas of files of ours, by path."""
    return {"schemas/Project.json": json.dumps(project_schema(), indent=2) + "\n"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], "python -m odfbuild.project.generate", schemas()))
