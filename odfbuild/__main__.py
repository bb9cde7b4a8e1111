"""`python -m odfbuild` is the command `odfbuild`."""

from odfbuild.cli.main import main

main()
