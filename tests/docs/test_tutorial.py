"""The tutorial as a new user goes through it: from a wheel in an environment of its own."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from odfbuild.version import __version__
from tests.docs.console import Command, commands, run_all
from tests.docs.environments import ROOT, run

TUTORIAL = ROOT / "docs" / "tutorial.md"


def test_a_wheel_has_all_that_the_program_reads(builder: Path) -> None:
    script = (
        "import odfbuild\n"
        "from odfbuild.project.resources import schema_text, template_text\n"
        "from odfbuild.report.error_codes import error_codes\n"
        "from odfbuild.api.authoring.scaffold import KINDS\n"
        "print(odfbuild.__file__)\n"
        "of_url = ('s3', 'sftp', 'http')\n"
        "[template_text(f'new/{kind}.yaml.j2') for kind in KINDS if kind not in of_url]\n"
        "template_text('report/plan.html.j2'), template_text('init/2026-01.csv')\n"
        "schema_text('DatasetSnapshot.json'), schema_text('plan.schema.json'), error_codes()\n"
    )
    where = run(builder / "python", "-c", script).strip()
    assert Path(where).is_relative_to(builder.parent)
    files = {"templates", "schemas"}
    for folder in files:
        shipped = Path(where).parent / "_resources" / folder
        ours = {str(p.relative_to(ROOT / folder)) for p in (ROOT / folder).rglob("*.*")}
        assert {str(p.relative_to(shipped)) for p in shipped.rglob("*.*")} >= ours
    assert (Path(where).parent / "py.typed").is_file()


def test_links_of_a_package_page_lead_to_files_of_the_release(wheel: Path) -> None:
    """A package page has no files beside it."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith("/METADATA"))
        text = archive.read(name).decode()
    release = f"https://github.com/odfbuild/odfbuild/(blob|raw)/v{__version__}/"
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    ours = [re.sub(release, "", link) for link in links if re.match(release, link)]
    assert len(ours) > 50
    assert [link for link in ours if not (ROOT / link).exists()] == []
    assert [link for link in links if not link.startswith("https://")] == []
    assert f"/raw/v{__version__}/docs/images/plan.svg)" in text


@pytest.mark.spark
def test_the_tutorial_does_what_it_says_and_needs_spark_only_for_records(
    planner: Path, builder: Path, tmp_path: Path
) -> None:
    """From nothing to a merged pull request, by the page alone.

    As where CI plans and another machine builds: the same chains, two installations. That machine
    has a resident engine.
    """
    listed = [*commands(TUTORIAL), Command("odfbuild engine stop", "")]
    said = {word for command in listed for word in command.text.split()}
    assert {"init", "new", "plan", "apply", "git", "verify"} <= said
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "odfbuild"
    program.write_text(
        "#!/bin/sh\n"
        "export ODFBUILD_RESIDENT=auto ODFBUILD_IDLE_MINUTES=2\n"
        'case "$1" in\n'
        f'apply | tail | verify | engine) exec {builder}/odfbuild "$@" ;;\n'
        f'*) exec {planner}/odfbuild "$@" ;;\n'
        "esac\n"
    )
    program.chmod(0o755)
    if wrong := run_all(listed, tmp_path, programs):
        pytest.fail("\n\n".join(wrong), pytrace=False)
