"""`freshness --prometheus`: a file that `node_exporter` shows, read by the client of Prometheus."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from odfbuild.inspect.ages import DatasetAge
from odfbuild.report.prometheus import prometheus_text
from tests.apply.in_process import Program
from tests.apply.tiny import Tiny


def read(text: str) -> dict[str, float]:
    """Numbers by name and dataset; the project is the same in all."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            assert sample.labels["project"] == "tiny"
            short = sample.name.removeprefix("odfbuild_")
            found[f"{short} {sample.labels.get('dataset', '')}".rstrip()] = sample.value
    return found


def test_ages_records_and_last_runs_are_there(
    tiny: Tiny, odfbuild: Program, tmp_path: Path
) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  freshness: [{match: [root], maxAge: 1d}]\n")
    odfbuild.apply()
    file = tmp_path / "odfbuild.prom"
    file.write_text("what was there before")
    said = odfbuild(
        "freshness", "--at", "2024-01-03T12:00:00Z", "--prometheus", str(file), "--json"
    )
    assert said.code == 0
    found = read(file.read_text())
    ended = found.pop("run_last_timestamp_seconds")
    assert ended > 1_700_000_000
    assert found == {
        "dataset_age_seconds root": 43_200,
        "dataset_age_seconds derived": 43_200,
        "dataset_max_age_seconds root": 86_400,
        "dataset_stale root": 0,
        "dataset_damaged root": 0,
        "dataset_damaged derived": 0,
        "dataset_records root": 3,
        "dataset_records derived": 3,
        "dataset_late_files root": 0,
        "dataset_late_files derived": 0,
        "dataset_failed root": 0,
        "dataset_failed derived": 0,
        "dataset_last_success_timestamp_seconds root": ended,
        "dataset_last_success_timestamp_seconds derived": ended,
        "run_last_exit_code": 0,
    }
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["odfbuild.prom"]


def test_a_failure_shows_beside_the_last_success(
    tiny: Tiny, odfbuild: Program, tmp_path: Path
) -> None:
    odfbuild.apply()
    file = tmp_path / "odfbuild.prom"
    odfbuild.ok("freshness", "--prometheus", str(file))
    before = read(file.read_text())
    (tiny.root / "data" / "2.csv").write_text("event_time,id,value\nno,time,here\n")
    assert odfbuild("apply", "-y").code == 1
    odfbuild.ok("freshness", "--prometheus", str(file))
    found = read(file.read_text())
    key = "dataset_last_success_timestamp_seconds root"
    assert (found["dataset_failed root"], found["dataset_failed derived"]) == (1, 0)
    assert (found[key], found["run_last_exit_code"]) == (before[key], 1)


def test_a_stale_dataset_is_written_and_told_by_the_exit_code(
    tiny: Tiny, odfbuild: Program, tmp_path: Path
) -> None:
    with (tiny.root / "odfbuild.yaml").open("a") as config:
        config.write("  freshness: [{match: [root], maxAge: 1d}]\n")
    odfbuild.apply()
    assert odfbuild("freshness", "root", "--prometheus", str(tmp_path / "a.prom")).code == 3
    found = read((tmp_path / "a.prom").read_text())
    assert found["dataset_stale root"] == 1
    assert not [each for each in found if each.endswith("derived")]


def test_a_file_that_cannot_be_written_is_an_error(odfbuild: Program, tmp_path: Path) -> None:
    odfbuild.apply()
    said = odfbuild("freshness", "--prometheus", str(tmp_path / "nowhere" / "a.prom"))
    assert said.code == 1
    assert "E0910" in said.err


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "ä"])
def test_names_of_any_signs_are_read_as_they_are(name: str) -> None:
    text = prometheus_text(
        name, [DatasetAge(name=name, watermark=None, age=None, limit=None)], {}, []
    )
    (family, *_) = text_string_to_metric_families(text)
    assert family.samples[0].labels == {"project": name, "dataset": name}
