"""Environments and variables: one project, several sets of values and of chains."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from odfbuild.cli.main import globals_first
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny
from tests.project.write_project import derived_yaml

_TEMPLATE = derived_yaml(
    "scaled", "root", "SELECT event_time, id, value * {{ factor }} AS value FROM src"
)


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """`scaled` multiplies by the variable `factor`: 2, and in prod 5."""
    tiny = Tiny.fresh(tmp_path / "p")
    (tiny.root / "datasets" / "derived.yaml").unlink()
    (tiny.root / "datasets" / "scaled.yaml.j2").write_text(_TEMPLATE)
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text() + "  vars:\n    factor: 2\n    other: x\n")
    (tiny.root / "vars").mkdir()
    (tiny.root / "vars" / "prod.yaml").write_text("factor: 5\nregion: west\n")
    return tiny


def factor(odfbuild: Program, *arguments: str) -> str:
    """What `scaled` multiplies by."""
    manifest = yaml.safe_load(odfbuild.ok("render", "scaled", *arguments).out)
    (event,) = manifest["content"]["metadata"]
    return event["transform"]["queries"][0]["query"].split(" * ")[1].split()[0]


def test_stronger_sources_of_a_variable_win(tiny: Tiny, odfbuild: Program) -> None:
    (tiny.root / "more.yaml").write_text("factor: 6\n")
    assert factor(odfbuild) == "2"
    assert factor(odfbuild, "-e", "prod") == "5"
    assert factor(odfbuild, "-e", "prod", "--vars-file", "more.yaml") == "6"
    odfbuild.monkeypatch.setenv("ODFBUILD_VAR_factor", "7")
    assert factor(odfbuild, "--vars-file", "more.yaml") == "7"
    assert factor(odfbuild, "--var", "factor=8") == "8"
    odfbuild.monkeypatch.setenv("ODFBUILD_ENV", "prod")
    odfbuild.monkeypatch.delenv("ODFBUILD_VAR_factor")
    assert factor(odfbuild) == "5"


def test_dbt_core_9564_an_environment_compares_with_its_own_chains_only(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.apply()
    odfbuild.ok("apply", "-y", "--target", "prod")
    assert odfbuild.ok("plan").out.startswith("No changes.")
    assert odfbuild.ok("plan", "-t", "prod").out.startswith("No changes.")
    assert (tiny.root / "chains-prod" / "scaled" / "refs" / "head").exists()
    assert [r["value"] for r in tiny.records("scaled")] == [2, 4, 6]
    assert odfbuild.ok("plan", "-e", "prod", "--json").data["env"] == "prod"
    assert "<!-- odfbuild:tiny:prod -->" in odfbuild.ok("plan", "-e", "prod", "--md").out
    assert len(odfbuild.ok("ls", "-e", "prod", "--json").data) == 2


def test_an_environment_may_say_where_its_chains_are(tiny: Tiny, odfbuild: Program) -> None:
    config = tiny.root / "odfbuild.yaml"
    text = "  environments:\n    prod:\n      state: elsewhere/prod\n    empty: {}\n"
    config.write_text(config.read_text() + text)
    odfbuild.ok("apply", "-y", "-e", "prod")
    odfbuild.ok("apply", "-y", "-e", "empty")
    assert (tiny.root / "elsewhere" / "prod" / "root").is_dir()
    assert (tiny.root / "chains-empty" / "root").is_dir()
    assert not (tiny.root / "chains").exists()


def test_chains_of_an_environment_do_not_lie_within_those_of_another(
    tiny: Tiny, odfbuild: Program
) -> None:
    """They would look like datasets that nobody defines, to be removed."""
    config = tiny.root / "odfbuild.yaml"
    text = config.read_text() + "  environments:\n    prod:\n      state: chains/prod\n"
    config.write_text(text)
    for verb in (["plan"], ["plan", "-e", "prod"], ["validate"]):
        said = odfbuild(*verb)
        assert said.code == 1
        assert said.err == (
            "error[E0380]: the chains of environment 'prod' would be inside those of the project: "
            "chains/prod is in chains\n"
            "  --> odfbuild.yaml:12:7\n"
            "   |\n"
            "12 |       state: chains/prod\n"
            "   |       ^^^^^\n"
            "help: give each a folder of its own, such as `state: chains/default` for the project; "
            "move existing chains there\n"
            "see: odfbuild explain E0380\n"
        )
    config.write_text(text.replace("  state: chains\n", "  state: chains/default\n"))
    assert "2 to create" in odfbuild.ok("plan").out
    assert "2 to create" in odfbuild.ok("plan", "-e", "prod").out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("[tiny]", "expected a string; found a list"),
        ("5", "expected a string; found the number 5"),
    ],
)
def test_odfbuild_yaml_is_refused_in_the_words_of_definitions(
    tiny: Tiny, odfbuild: Program, name: str, message: str
) -> None:
    config = tiny.root / "odfbuild.yaml"
    config.write_text(config.read_text().replace("name: tiny", f"name: {name}"))
    said = odfbuild("plan")
    assert (said.code, said.err.partition("\n")[0]) == (1, f"error[E0105]: {message}")
    config.write_text("kind: Project\nversion: 2\n")
    said = odfbuild("plan")
    assert "error[E0105]: 'content' is missing" in said.err
    assert "error[E0105]: expected 1; found the number 2" in said.err


def test_a_saved_plan_goes_to_the_environment_that_it_was_made_for(
    tiny: Tiny, odfbuild: Program
) -> None:
    odfbuild.ok("plan", "-e", "prod", "-o", "plan.json")
    said = odfbuild("apply", "plan.json", "-y", "-e", "empty")
    assert said.code == 1
    assert "error[E0365]" in said.err
    odfbuild.ok("apply", "plan.json", "-y")
    assert (tiny.root / "chains-prod" / "scaled").is_dir()
    assert not (tiny.root / "chains").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-e", "prd"], 1, "error[E0115]: this project has no environment 'prd'"),
        (["-e", "prd"], 1, "help: did you mean 'prod'?"),
        (["--var", "factr=3"], 1, "error[E0116]: --var gives 'factr' a value"),
        (["--var", "region=east"], 1, "error[E0116]"),
        (["--var", "factor"], 64, "is not of the form name=value"),
        (["--vars-file", "no.yaml"], 1, "error[E0103]"),
        (["--vars-file", "list.yaml"], 1, "error[E0117]: list.yaml must be one mapping"),
        (["--vars-file", "typo.yaml"], 1, "error[E0116]: the file gives 'facter' a value"),
        (["--var", "factor=[1"], 1, "error[E0101]"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tiny: Tiny, odfbuild: Program, arguments: list[str], code: int, message: str
) -> None:
    (tiny.root / "list.yaml").write_text("- 1\n")
    (tiny.root / "typo.yaml").write_text("facter: 3\n")
    said = odfbuild("validate", *arguments)
    assert said.code == code
    assert message in said.err


def test_variables_of_the_machine_that_nothing_declares_are_out_of_reach(
    tiny: Tiny, odfbuild: Program
) -> None:
    (tiny.root / "datasets" / "scaled.yaml.j2").write_text(_TEMPLATE.replace("factor", "token"))
    odfbuild.monkeypatch.setenv("ODFBUILD_VAR_token", "5")
    odfbuild.monkeypatch.setenv("token", "5")
    said = odfbuild("validate")
    assert said.code == 1
    assert "error[E0121]: 'token' is not defined" in said.err


def test_options_of_the_program_may_stand_anywhere(odfbuild: Program) -> None:
    valued, plain = {"-e", "--env", "--var"}, {"-q", "--quiet"}
    args = ["plan", "-e", "prod", "-s", "x", "-q", "--var=a=b", "-vv", "--", "-e", "y"]
    assert globals_first(args, valued, plain) == [
        *("-e", "prod", "-q", "--var=a=b", "-vv"),
        *("plan", "-s", "x", "--", "-e", "y"),
    ]
    assert globals_first(["plan", "-e"], valued, plain) == ["-e", "plan"]
    assert odfbuild("plan", "-e").code == 64
    assert odfbuild.ok("plan", "-C", str(odfbuild.root), "--no-color", "-q").code == 0
