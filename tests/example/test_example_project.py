"""The main job on real data: what the README promises, shown by the real program.

The first build, plans and what starts no JVM are processes; what is built on that is done in this
one, on the engine that all tests share.
"""

from __future__ import annotations

import random
import stat
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from odfbuild.engine.contract import Engine
from tests.cli.fresh_clones import stays_clean_in_clones
from tests.example.expected import AGGREGATES, EXPECTED
from tests.example.odfbuild_project import ExampleProject, connect

pytestmark = pytest.mark.spark

OF_FLIGHTS = {
    "us.bts.flights",
    "nyc.departures",
    "nyc.departures.ewr",
    "nyc.departures.jfk",
    "nyc.departures.lga",
    "nyc.departures.morning",
    "nyc.departures.weather",
    "nyc.delays.daily",
    "nyc.routes.delayed",
    "nyc.disruptions",
    "nyc.flights.cancelled",
    "nyc.flights.delayed",
    "nyc.flights.long-haul",
}
APRIL = 28_330
DELAYED = "flights/nyc.flights.delayed.yaml"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> ExampleProject:
    """The example, applied once. Tests that change something take a copy."""
    applied = ExampleProject.applied(tmp_path_factory)
    return applied.copy(tmp_path_factory.mktemp("example") / "project")


@pytest.fixture(scope="module")
def april(
    built: ExampleProject, spark_engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> ExampleProject:
    """The built example after April arrived and was applied."""
    copied = built.copy(tmp_path_factory.mktemp("april") / "project")
    project = replace(copied, engine=spark_engine)
    project.next_month()
    project.ok("apply", "--auto-approve")
    return project


@pytest.fixture
def no_java(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """An environment whose only Java leaves a trace, and the trace."""
    trace = tmp_path / "java-was-started"
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho started >> {trace}\nexit 1\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    home = str(java.parents[1])
    return {"ODFBUILD_JAVA_HOME": home, "JAVA_HOME": home}, trace


def test_every_definition_becomes_a_chain(built: ExampleProject) -> None:
    assert set(built.chains()) == set(EXPECTED)


def test_a_clone_of_the_example_plans_nothing(built: ExampleProject, tmp_path: Path) -> None:
    stays_clean_in_clones(built.copy(tmp_path / "example").root, tmp_path / "clone")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_records_equal_what_duckdb_computes_from_the_csv_files(
    built: ExampleProject, name: str
) -> None:
    assert differences(built, name) == (0, 0)


@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_aggregates_equal_what_duckdb_computes_from_the_csv_files(
    built: ExampleProject, name: str
) -> None:
    db = connect(built.root)
    db.register("slices", built.table(db, name))
    asked = AGGREGATES[name]
    actual = db.execute(f"SELECT {asked} FROM slices").fetchall()
    assert actual == db.execute(f"SELECT {asked} FROM ({EXPECTED[name]})").fetchall()


@pytest.mark.parametrize("name", ["us.bts.flights", "nyc.departures", "us.iem.weather"])
def test_offsets_number_the_records_without_gaps(built: ExampleProject, name: str) -> None:
    db = connect(built.root)
    asked = 'min("offset"), max("offset"), count(DISTINCT "offset"), count(*)'
    first, last, distinct, records = built.table(db, name).aggregate(asked).fetchall()[0]
    assert (first, last, distinct) == (0, records - 1, records)


def test_a_second_apply_has_nothing_to_do_and_starts_no_jvm(
    built: ExampleProject, no_java: tuple[dict[str, str], Path]
) -> None:
    env, trace = no_java
    heads = built.heads()
    done = built.run("apply", "--auto-approve", env=env)
    assert done.code == 0, done.text
    assert "No changes." in done.out
    assert not trace.exists()
    assert built.heads() == heads
    assert done.cpu < 3.0, "a JVM alone takes more"


def test_plan_of_an_applied_project_is_empty(built: ExampleProject) -> None:
    assert built.plan() == {}
    assert built.run("plan", "--detailed-exitcode").code == 0


def test_plan_of_a_new_month_names_flights_and_what_descends_from_them(
    built: ExampleProject, no_java: tuple[dict[str, str], Path], tmp_path: Path
) -> None:
    project = built.copy(tmp_path / "project")
    project.next_month()
    env, trace = no_java
    assert project.run("plan", "--detailed-exitcode", env=env).code == 2
    plan = project.plan()
    assert set(plan) == OF_FLIGHTS
    assert plan["us.bts.flights"]["pending"]["records"] == APRIL
    assert f"{APRIL}" in project.ok("plan").out.replace(",", "").replace(" ", "")
    assert not trace.exists()


def test_apply_of_a_new_month_adds_exactly_its_records(
    built: ExampleProject, april: ExampleProject
) -> None:
    db = connect(april.root)
    before, after = built.heads(), april.heads()
    assert {name for name in after if after[name] != before[name]} == OF_FLIGHTS
    assert april.count(db, "us.bts.flights") - built.count(db, "us.bts.flights") == APRIL
    assert {name: differences(april, name) for name in EXPECTED} == dict.fromkeys(EXPECTED, (0, 0))


def test_apply_of_a_new_month_leaves_old_slices_as_they_were(
    built: ExampleProject, april: ExampleProject
) -> None:
    for name, chain in built.chains().items():
        for kind in ("data", "blocks"):
            for file in (chain / kind).iterdir():
                kept = april.chains()[name] / kind / file.name
                assert kept.read_bytes() == file.read_bytes()


def test_verify_passes_on_what_apply_wrote(april: ExampleProject) -> None:
    april.ok("verify")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["blocks", "data"])
def test_a_flipped_byte_fails_verify_and_is_named(
    april: ExampleProject, tmp_path: Path, kind: str, seed: int
) -> None:
    project = april.copy(tmp_path / "project")
    choice = random.Random(f"{kind}/{seed}")
    files = sorted((project.root / "chains").glob(f"*/{kind}/*"), key=lambda path: path.name)
    # Hashes differ from run to run, so a fixed seed walks through different places: any must do.
    victim = choice.choice(files)
    content = bytearray(victim.read_bytes())
    content[choice.randrange(len(content))] ^= 1 << choice.randrange(8)
    victim.chmod(0o644)
    victim.write_bytes(content)
    # Replaying all that is whole takes Spark; whether a byte is found does not depend on it.
    done = project.run("verify", *(() if (kind, seed) == ("data", 0) else ("--integrity",)))
    name = (victim.parents[1] / "info" / "alias").read_text().strip()
    assert done.code == 3, done.text
    assert name in done.text
    assert victim.name[-8:] in done.text


def test_a_changed_query_is_one_set_transform_with_its_diff(
    built: ExampleProject, tmp_path: Path
) -> None:
    project = built.copy(tmp_path / "project")
    project.edit(DELAYED, "arr_delay >= 15", "arr_delay >= 30")
    plan = project.plan()
    assert set(plan) == {"nyc.flights.delayed"}
    assert [event["kind"] for event in plan["nyc.flights.delayed"]["events"]] == ["SetTransform"]
    text = project.ok("plan").out
    assert text.count("SetTransform") == 1
    assert any(is_change(line, "-", "WHERE arr_delay >= 15") for line in text.splitlines())
    assert any(is_change(line, "+", "WHERE arr_delay >= 30") for line in text.splitlines())
    stay = project.count(connect(project.root), "nyc.flights.delayed")
    assert str(stay) in text.replace(",", "").replace(" ", "")


def test_a_changed_query_goes_forward_from_where_it_is(
    built: ExampleProject, spark_engine: Engine, tmp_path: Path
) -> None:
    project = replace(built.copy(tmp_path / "project"), engine=spark_engine)
    name = "nyc.flights.delayed"
    db = connect(project.root)
    before = project.count(db, name)
    project.edit(DELAYED, "arr_delay >= 15", "arr_delay >= 30")
    project.next_month()
    project.ok("apply", "--auto-approve")
    april_30 = "SELECT count(*) FROM flights WHERE month = 4 AND arr_delay >= 30"
    assert project.count(db, name) - before == db.execute(april_30).fetchall()[0][0]
    assert project.ok("log", name).out.count("SetTransform") == 2
    assert project.plan() == {}
    project.ok("verify")


def test_white_space_and_comments_in_a_query_append_nothing(
    built: ExampleProject, tmp_path: Path
) -> None:
    project = built.copy(tmp_path / "project")
    heads = project.heads()
    project.edit(DELAYED, "WHERE arr_delay", "-- Late is late.\n          WHERE   arr_delay")
    assert project.plan() == {}
    assert project.run("plan", "--detailed-exitcode").code == 0
    done = project.ok("apply", "--auto-approve")
    assert "No changes." in done.out
    assert project.heads() == heads


def differences(project: ExampleProject, name: str) -> tuple[int, int]:
    """How many records are only in the slices, and only in what DuckDB computes."""
    db = connect(project.root)
    expected = db.sql(EXPECTED[name])
    rest = ", ".join(column for column in expected.columns if column != "event_time")
    columns = f"epoch_ms(event_time::TIMESTAMPTZ) AS event_time, {rest}"
    db.register("slices", project.amounts_to(db, name))
    left, right = (f"SELECT {columns} FROM {table}" for table in ("slices", f"({EXPECTED[name]})"))
    return rows(db, f"{left} EXCEPT ALL {right}"), rows(db, f"{right} EXCEPT ALL {left}")


def rows(db: duckdb.DuckDBPyConnection, query: str) -> int:
    return int(db.execute(f"SELECT count(*) FROM ({query})").fetchall()[0][0])


def is_change(line: str, sign: str, text: str) -> bool:
    """Whether a line of a diff removes (`-`) or adds (`+`) that text."""
    stripped = line.strip()
    return stripped.startswith(sign) and stripped[1:].strip() == text
