"""`odfbuild engine`: engines that stay, also for other programs, and releases of the engine."""

from __future__ import annotations

from odfbuild.cli.defaults import Group
from odfbuild.cli.engine_deprecate import deprecate
from odfbuild.cli.engine_resident import start, status, stop
from odfbuild.cli.engine_serve import serve

engine = Group(help="Keep engines running, serve them to other programs, compare releases.")
for verb in (start, status, stop, serve, deprecate):
    engine.command()(verb)
