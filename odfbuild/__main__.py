"""Start the program: what `odfbuild` and `python -m odfbuild` run.

Imports take most of the time of a short command, so Ctrl-C may well come during them.
"""

from __future__ import annotations

import sys

from odfbuild.platforms import UNSUPPORTED, is_supported


def main() -> None:
    """Run the program and leave with its exit code; 130 when interrupted before it began."""
    try:
        if not is_supported():
            sys.exit(UNSUPPORTED)
        from odfbuild.cli.main import main as program
    except KeyboardInterrupt:
        sys.exit(130)
    program()


if __name__ == "__main__":
    main()
