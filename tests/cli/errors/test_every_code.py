"""Every code of an error is met by the program itself: in a pipe, and per command on a terminal.

What needs no engine is met here, by a project for each; what shows when data is built or built
again, by the runs of `test_wrong_runs.py`. Both take their inputs from `tests/cli/wrong`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from odfbuild.report.error_codes import error_codes
from tests.cli.real import NO_JVM, NO_QUESTIONS, WAYS, Said, at_once
from tests.cli.wrong import CASES, FLAWS
from tests.cli.wrong.built import AGAIN, BUILT
from tests.cli.wrong.prepare import flawed_project, wrong_projects
from tests.cli.wrong.spoil import Case, Flaw

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
ELSEWHERE = {
    **dict.fromkeys(
        ("E0366", "E0367", "E0368", "E0369"),
        ("tests/plan/test_computation.py", "a step that reads more than policies let it"),
    ),
    "E0385": ("tests/apply/test_plan_of_changelogs.py", "a step that would read too much"),
    **dict.fromkeys(
        ("E1601", "E1602", "E1603", "E1608", "E1610", "E1611"),
        ("tests/personal/test_declared.py", "personal columns that cannot be"),
    ),
    **dict.fromkeys(
        ("E1605", "E1606"), ("tests/personal/test_values.py", "values that do not fit")
    ),
    **dict.fromkeys(
        ("E1604", "E1607", "E1609", "E1612", "E1613"),
        ("tests/personal/test_rights.py", "a machine without the right, or another one"),
    ),
    **dict.fromkeys(
        ("E0395", "E0396", "E0397", "E0398", "E0399"),
        ("tests/cli/test_contracts.py", "a contract that is broken, or is none"),
    ),
    **dict.fromkeys(
        ("E1675", "E1680", "E1681", "E1682"),
        ("tests/engine/test_pieces_of_executors.py", "a worker that lacks something"),
    ),
    "E1670": ("tests/engine/test_pieces_of_executors.py", "a server that reads it otherwise"),
    "E1671": ("tests/exchange/repositories/test_packs.py", "a pack with other bytes"),
    "E1683": ("tests/engine/test_pieces_of_executors.py", "a storage that lost a slice"),
    "E1684": ("tests/engine/test_pieces_of_executors.py", "tasks in a sandbox"),
    "E1685": ("tests/engine/test_root_pieces.py", "a source that tasks cannot read"),
    "E1686": ("tests/engine/test_root_pieces.py", "a source that changed meanwhile"),
    "E1690": ("tests/cli/sharing/test_stored_garbage.py", "a block that is none"),
    "E0551": ("tests/cli/test_k_anonymity.py", "a value that one record has"),
    "E1650": ("tests/exchange/passport/test_passports.py", "statements without the key"),
    **dict.fromkeys(
        ("E1651", "E1652", "E1653", "E1654", "E1655"),
        ("tests/apply/test_portals.py", "a portal that cannot be"),
    ),
    "E1660": ("tests/ingest/test_kafka.py", "a batch with a wrong checksum"),
    "E1661": ("tests/ingest/test_kafka.py", "certificates and schemas that are not there"),
    "E0672": (
        "tests/cli/sharing/test_chains_in_storage.py",
        "chains in a storage that is not named",
    ),
    "E0673": ("tests/store/test_stored_chains.py", "a summary with wrong numbers, signed"),
    "E0674": ("tests/store/test_stored_chains.py", "a pack that is damaged"),
    "E0675": ("tests/cli/sharing/test_chains_in_storage.py", "settings on one line"),
    "E0676": ("tests/cli/sharing/test_chains_in_storage.py", "a forged summary"),
    "E0914": ("tests/store/test_stored_chains.py", "a storage that is not reached"),
    "E0353": ("tests/apply/derive/test_on_query_change.py", "a consent that contradicts itself"),
    "E0333": (
        "tests/apply/chains/test_reset.py",
        "a folder that holds blocks of another dataset, too",
    ),
    "E0383": ("tests/api/editor/test_language_server.py", "renaming what a template makes"),
    "E0384": ("tests/api/editor/test_language_server.py", "renaming to a name that is taken"),
    "E0180": ("tests/exchange/dbt/test_migrate_dbt.py", "a folder without a dbt project"),
    "E0181": ("tests/exchange/dbt/test_migrate_dbt.py", "a dbt project for an unknown database"),
    "E0182": ("tests/exchange/dbt/test_migrate_dbt.py", "a manifest of another program"),
    "E0183": ("tests/exchange/dbt/test_migrate_dbt.py", "names that cannot be names of datasets"),
    "E0419": ("tests/ingest/test_ethereum.py", "a node whose chain was reorganised"),
    "E0435": ("tests/conformance/test_writer_scenarios.py", "links to objects"),
    "E0126": ("tests/project/test_limits.py", "a template without bounds"),
    "E0127": ("tests/project/test_limits.py", "a link to a folder around it"),
    "E0173": ("tests/cli/test_alerts.py", "an entry without a receiver"),
    "E0912": ("tests/cli/test_alerts.py", "a webhook that refuses"),
    "E0913": ("tests/integrations/test_command.py", "a scheduler with another program"),
    "E0128": ("tests/project/test_query_files.py", "a query in a definition and in a file beside"),
    "E0318": ("tests/cli/git/test_lost_chains.py", "a chain that was deleted"),
    "E0523": ("tests/hostile/test_safe_commands.py", "a query that unfolds without end"),
    "E0524": ("tests/apply/derive/test_queries.py", "a text that only Spark understands"),
    "E1091": (
        "tests/exchange/repositories/signed/test_signed_repositories.py",
        "unsigned news",
    ),
    "E1145": ("tests/cli/git/test_shared_branches.py", "a branch that nobody pushed"),
    "E0437": ("tests/apply/ingest/test_blank_event_times.py", "records without an event time"),
    "E0438": ("tests/apply/ingest/test_late_files.py", "a late file where none may come"),
    "E0439": ("tests/apply/ingest/test_late_files.py", "a late file of a snapshot"),
    "E0440": ("tests/ingest/test_kafka.py", "brokers that are not there"),
    "E0441": ("tests/ingest/test_kafka.py", "a login that brokers refuse"),
    "E0442": ("tests/ingest/test_kafka.py", "a topic that is not there"),
    "E0443": ("tests/ingest/test_kafka.py", "messages that are gone"),
    "E0444": ("tests/ingest/test_kafka.py", "another cluster"),
    "E0445": ("tests/ingest/test_kafka.py", "a message that is no JSON"),
    "E0446": ("tests/ingest/test_kafka.py", "an address without a topic"),
    "E0447": ("tests/ingest/test_kafka.py", "a topic read as CSV"),
    "E0450": ("tests/ingest/odd_sources.py", "sources whose bytes are of another kind"),
    "E0461": ("tests/ingest/test_database_source.py", "a host on which no server listens"),
    "E0462": ("tests/ingest/test_database_source.py", "a wrong password"),
    "E0463": ("tests/ingest/test_database_source.py", "a table that is not there"),
    "E0464": ("tests/ingest/test_database_source.py", "a cursor that is no column"),
    "E0465": ("tests/ingest/test_database_source.py", "a cursor of text"),
    "E0466": ("tests/ingest/test_database_source.py", "an infinite time"),
    "E0467": ("tests/ingest/test_database_source.py", "rows without a value of the cursor"),
    "E0468": ("tests/ingest/test_database_source.py", "a table whose newest rows were deleted"),
    "E0469": ("tests/ingest/test_database_source.py", "a cursor with the merge strategy Snapshot"),
    "E0470": ("tests/ingest/test_database_source.py", "an address without a table"),
    "E0471": ("tests/ingest/test_database_source.py", "a table read as CSV"),
    "E0472": ("tests/ingest/test_database_source.py", "a query with a wrong word"),
    "E0482": ("tests/ingest/test_api.py", "an unknown parameter"),
    "E0483": ("tests/ingest/test_api.py", "a response that is no JSON"),
    "E0484": ("tests/ingest/test_api.py", "pages without an end"),
    "E0485": ("tests/ingest/test_api.py", "a login that is refused"),
    "E0486": ("tests/ingest/test_api.py", "an API read as one JSON document"),
    "E0487": ("tests/ingest/test_api.py", "a cursor with the merge strategy Snapshot"),
    "E0480": ("tests/ingest/test_sftp.py", "a host that is not known"),
    "E0481": ("tests/ingest/test_sftp.py", "a login that is refused"),
    "E0474": ("tests/ingest/test_spreadsheets.py", "an option that there is not"),
    "E0475": ("tests/ingest/test_spreadsheets.py", "a file that is no spreadsheet"),
    "E0476": ("tests/ingest/test_spreadsheets.py", "a sheet that is not there"),
    "E0477": ("tests/ingest/test_spreadsheets.py", "a column of numbers and text"),
    "E0478": ("tests/ingest/test_spreadsheets.py", "a cell with an error"),
    "E0479": ("tests/ingest/test_spreadsheets.py", "an archive made to fill memory"),
    "E0473": ("tests/ingest/test_database_source.py", "a table that somebody has locked"),
    "E0489": (
        "tests/apply/ingest/test_uuids.py",
        "a query that gives other text for a column of UUIDs",
    ),
    "E0490": ("tests/ingest/changes/test_changes_source.py", "a source that was not created"),
    "E0491": ("tests/ingest/changes/test_changes_source.py", "a replication slot that is gone"),
    "E0492": ("tests/ingest/changes/test_changes_source.py", "a table without replica identity"),
    "E0493": ("tests/ingest/changes/test_changes_source.py", "a table that was truncated"),
    "E0494": ("tests/ingest/changes/test_changes_source.py", "a slot that somebody reads"),
    "E0495": ("tests/ingest/changes/test_changes_source.py", "a user who may not create a slot"),
    "E0527": (
        "tests/engine/session/test_connect.py",
        "an installation without the extra `connect`",
    ),
    "E0528": ("tests/engine/session/test_connect.py", "a server that reads queries otherwise"),
    "E0529": ("tests/engine/session/test_connect.py", "a server that dies in the middle of a step"),
    "E0545": ("tests/engine/session/test_limits.py", "a step that takes longer than it may"),
    "E0546": ("tests/engine/session/test_lost_jvm.py", "a step that takes the memory of its JVM"),
    "E0547": (
        "tests/engine/session/test_connect.py",
        "a server that does not see the project's folder",
    ),
    "E0548": (
        "tests/engine/session/test_workers.py",
        "workers that do not see the project's folder",
    ),
    "E0549": ("tests/engine/session/test_workers.py", "records that a worker wrote elsewhere"),
    "E0624": ("tests/api/test_python_interface.py", "a listener that asks another project"),
    "E0832": ("tests/inspect/verify/test_object_links.py", "an object that is a link to a device"),
    "E0908": ("tests/engine/session/test_cluster.py", "a cluster whose workers take no work"),
    "E0909": ("tests/engine/session/test_lost_jvm.py", "a JVM that ends in the middle of a step"),
    "E1005": ("tests/exchange/repositories/test_http.py", "a server that refuses"),
    "E1006": (
        "tests/exchange/repositories/transfers/test_hostile_files.py",
        "a block with a flipped bit",
    ),
    "E1007": (
        "tests/exchange/repositories/transfers/test_hostile_files.py",
        "a repository that lacks a file",
    ),
    "E1008": (
        "tests/exchange/repositories/transfers/test_hostile_files.py",
        "an object with a flipped bit",
    ),
    "E1009": (
        "tests/exchange/repositories/transfers/test_hostile_files.py",
        "a head that is no hash",
    ),
    "E1010": (
        "tests/exchange/repositories/transfers/test_hostile_files.py",
        "blocks with wrong numbers",
    ),
    "E1011": (
        "tests/exchange/repositories/transfers/test_hostile_files.py",
        "files that are too large",
    ),
    "E1012": ("tests/exchange/repositories/test_http.py", "a server that fails"),
    "E1013": ("tests/exchange/repositories/test_http.py", "a server that redirects to http"),
    "E1014": ("tests/exchange/repositories/test_http.py", "a push to a plain server"),
    "E1015": ("tests/exchange/repositories/test_listing.py", "a server that does not list"),
    "E1016": ("tests/exchange/repositories/test_simple.py", "two pushes at once"),
    "E1017": ("tests/exchange/repositories/test_simple.py", "a store that ignores conditions"),
    "E1018": ("tests/exchange/repositories/test_http.py", "a server that is slow"),
    "E1020": ("tests/exchange/repositories/transfers/test_pull.py", "an address where nothing is"),
    "E1021": ("tests/exchange/repositories/transfers/test_pull.py", "a block of another format"),
    "E1022": (
        "tests/exchange/repositories/transfers/test_pull.py",
        "a published chain that breaks a rule",
    ),
    "E1023": (
        "tests/exchange/repositories/transfers/test_pull.py",
        "another dataset under the name",
    ),
    "E1024": ("tests/exchange/repositories/transfers/test_pull.py", "one dataset under two names"),
    "E1025": ("tests/exchange/repositories/transfers/test_pull.py", "a history that was rewritten"),
    "E1026": (
        "tests/exchange/repositories/transfers/test_pull.py",
        "a chain with blocks of one's own",
    ),
    "E1027": (
        "tests/exchange/repositories/transfers/test_push.py",
        "a repository with newer blocks",
    ),
    "E1028": ("tests/exchange/repositories/transfers/test_push.py", "two histories"),
    "E1029": (
        "tests/exchange/repositories/transfers/test_push.py",
        "another dataset at the address",
    ),
    "E1030": ("tests/exchange/repositories/transfers/test_push.py", "a clone without the data"),
    "E1031": ("tests/exchange/repositories/transfers/test_pull.py", "a block that is not there"),
    "E1040": (
        "tests/exchange/repositories/smart/test_smart_client.py",
        "a server that is not there",
    ),
    "E1041": (
        "tests/exchange/repositories/smart/test_smart_client.py",
        "a server that refuses a token",
    ),
    "E1042": (
        "tests/exchange/repositories/smart/test_smart_client.py",
        "a server that speaks another protocol",
    ),
    "E1043": ("tests/exchange/repositories/smart/test_smart_client.py", "a server that fails"),
    "E1044": ("tests/exchange/repositories/smart/test_smart_client.py", "a connection that ends"),
    "E1045": (
        "tests/exchange/repositories/smart/test_smart_client.py",
        "a server that sends a wrong archive",
    ),
    "E1046": (
        "tests/exchange/repositories/smart/test_smart_client.py",
        "a signed URL that has expired",
    ),
    "E1047": (
        "tests/exchange/repositories/smart/test_smart_client.py",
        "a server that sends other bytes",
    ),
    "E1048": (
        "tests/exchange/repositories/smart/test_smart_client.py",
        "a server that names foreign URLs",
    ),
    "E1049": (
        "tests/exchange/repositories/smart/test_smart_limits.py",
        "a history of more than 64 MiB",
    ),
    "E1050": (
        "tests/exchange/repositories/smart/test_smart_client.py",
        "a name that is taken on a server",
    ),
    "E1054": (
        "tests/exchange/repositories/serve/test_pushed_records.py",
        "a server without --ingest",
    ),
    "E1055": (
        "tests/exchange/repositories/serve/test_pushed_records.py",
        "a media type that nothing reads",
    ),
    "E1056": (
        "tests/exchange/repositories/serve/test_pushed_records.py",
        "a request of more than a MiB",
    ),
    "E1057": (
        "tests/exchange/repositories/serve/test_pushed_records.py",
        "a sender that is too fast",
    ),
    "E1058": (
        "tests/exchange/repositories/serve/test_pushed_records.py",
        "a message with another signature",
    ),
    "E1059": (
        "tests/exchange/repositories/serve/test_pushed_records.py",
        "webhooks with wrong names and secrets",
    ),
    "E1080": (
        "tests/exchange/repositories/signed/test_signing.py",
        "a repository with a damaged statement",
    ),
    "E1081": (
        "tests/exchange/repositories/signed/test_signing.py",
        "a repository with a forged statement",
    ),
    "E1082": (
        "tests/exchange/repositories/signed/test_signing.py",
        "a repository that has to sign and does not",
    ),
    "E1083": (
        "tests/exchange/repositories/signed/test_signing.py",
        "a repository that serves an old head",
    ),
    "E1084": (
        "tests/exchange/repositories/signed/test_signing.py",
        "a repository that serves another history",
    ),
    "E1105": (
        "tests/cli/branching/test_branch_plans.py",
        "a deletion that is asked for in a branch",
    ),
    "E1106": ("tests/cli/branching/test_branch_plans.py", "a broker that is polled in a branch"),
    "E1107": ("tests/cli/branching/test_branch_plans.py", "a saved plan of another branch"),
    "E1108": ("tests/cli/branching/test_limited_branches.py", "a branch with another limit"),
    "E1109": ("tests/cli/branching/test_limited_branches.py", "a limit outside of a branch"),
    "E1104": ("tests/store/test_branches.py", "a branch of which nothing is known"),
    "E1120": ("tests/apply/chains/test_promote.py", "a branch over a sample"),
    "E1121": ("tests/apply/chains/test_promote.py", "a head that a merge in Git took away"),
    "E1122": ("tests/apply/chains/test_promote.py", "a dataset that branch and head created"),
    "E1123": ("tests/apply/chains/test_promote.py", "a head that was reset"),
    "E1124": ("tests/apply/chains/test_promote.py", "a branch with a rebuilt history"),
    "E1125": ("tests/plan/test_promotion.py", "a reader that was not rebuilt with its input"),
    "E1126": ("tests/apply/chains/test_promote.py", "a query that branch and head changed"),
    "E1127": ("tests/plan/test_promotion.py", "data that was pushed into a branch"),
    "E1128": ("tests/apply/chains/test_promote.py", "an input that was deleted on the head"),
    "E1129": ("tests/apply/chains/test_promote.py", "a promotion that was killed"),
    "E1089": ("tests/cli/sharing/test_keys.py", "a dataset whose private key is elsewhere"),
    "E1090": (
        "tests/exchange/repositories/signed/test_signed_repositories.py",
        "a signed history, and no key",
    ),
    "E1510": (
        "tests/engine/process/resident/test_lifecycle.py",
        "a project whose Spark is a cluster",
    ),
    "E1511": (
        "tests/engine/process/resident/test_lifecycle.py",
        "a folder of state open to others",
    ),
    "E1512": ("tests/engine/process/resident/test_lifecycle.py", "a process that ends at once"),
    "E1246": ("tests/apply/test_unit_tests.py", "values of other types than their columns"),
    "E1247": ("tests/apply/test_unit_tests.py", "a source without a schema that was never read"),
    "E1248": ("tests/inspect/verify/test_provenance_of_chains.py", "a row that no record has"),
    "E1221": ("tests/cli/looking/test_data_diff.py", "a key with a typing error"),
    "E1222": ("tests/cli/looking/test_data_diff.py", "a new dataset that reads a new dataset"),
    "E1142": (
        "tests/exchange/repositories/transfers/test_branches_in_repositories.py",
        "a server that has heads only",
    ),
    "E1143": (
        "tests/exchange/repositories/transfers/test_branches_in_repositories.py",
        "a branch that was not pushed",
    ),
    "E1144": (
        "tests/exchange/repositories/transfers/test_branches_in_repositories.py",
        "a branch with other blocks",
    ),
    "E1141": ("tests/cli/git/test_branches_in_git.py", "a remote that is not there"),
    "E1201": ("tests/records/test_records.py", "a column that is not there"),
    "E1202": ("tests/records/test_records.py", "a filter of the wrong type"),
    "E1203": ("tests/records/test_records.py", "a dataset that was never applied"),
    "E1204": ("tests/api/test_dataset.py", "a pin of another dataset"),
    "E1205": ("tests/api/test_dataset.py", "a time before a dataset began"),
    "E1260": ("tests/cli/looking/test_docs_site.py", "a folder with other files"),
    "E1261": ("tests/cli/looking/test_docs_site.py", "a file where a page is to be"),
    "E1311": ("tests/exchange/tables/test_project.py", "a table that no entry declares"),
    "E1312": ("tests/exchange/tables/test_project.py", "two tables of the same name"),
    "E1313": ("tests/exchange/tables/test_project.py", "a table that does not hold its block"),
    "E1360": ("tests/exchange/tables/test_open_formats.py", "a column of durations"),
    "E1361": ("tests/exchange/tables/test_open_formats.py", "a time with nanoseconds"),
    "E1362": ("tests/exchange/tables/test_open_formats.py", "a log of Delta that is cut off"),
    "E1363": ("tests/exchange/tables/test_open_formats.py", "a folder with other files"),
    "E1364": ("tests/exchange/tables/test_open_formats.py", "a partition of the empty text"),
    "E1365": ("tests/exchange/tables/test_open_formats.py", "a catalogue that is no database"),
    "E1367": ("tests/ingest/test_kartothek_source.py", "a table of kartothek read as CSV"),
    "E1366": ("tests/exchange/tables/test_open_formats.py", "a bucket without a catalogue"),
    "E1206": ("tests/cli/looking/test_sql_duckdb.py", "a query that DuckDB does not understand"),
    "E1207": ("tests/cli/looking/test_sql_duckdb.py", "a question that reads a file"),
    "E1208": ("tests/cli/looking/test_sql_duckdb.py", "a question without an end"),
    "E1210": ("tests/records/test_bounded_reading.py", "a value that each record repeats"),
    "E1209": ("tests/cli/looking/test_sql_duckdb.py", "a proof by DuckDB"),
    "E1401": ("tests/engine/process/test_serve_program.py", "a socket with too long a path"),
    "E1402": ("tests/engine/process/test_serve_requests.py", "a query that needs what is not kept"),
    "E1403": ("tests/engine/process/test_serve_requests.py", "a history larger than a checkpoint"),
    "E1404": ("tests/engine/process/test_serve_calls.py", "a slice that is missing"),
    "E1405": ("tests/engine/process/test_serve_calls.py", "a checkpoint of another engine"),
    "E1406": ("tests/engine/process/test_serve_calls.py", "a folder that is not there"),
    "E1304": ("tests/exchange/tables/test_faults.py", "a table that names an unknown column"),
    "E1305": ("tests/exchange/tables/test_faults.py", "a table that is partitioned by fractions"),
    "E1306": ("tests/exchange/tables/test_faults.py", "a table that is partitioned by all columns"),
    "E1307": ("tests/exchange/tables/test_faults.py", "a table that somebody else changed"),
    "E1308": ("tests/exchange/tables/test_faults.py", "two publications at once"),
    "E1309": ("tests/exchange/tables/test_faults.py", "a table without its description"),
    "E1310": ("tests/exchange/tables/test_faults.py", "a table at a place that is a file"),
    "E1431": ("tests/engine/process/test_programs.py", "an image, and nothing that runs it"),
    "E1432": ("tests/engine/process/test_containers.py", "an image that is not on this machine"),
    "E1433": ("tests/engine/process/test_programs.py", "an engine that ends at once"),
    "E1434": ("tests/engine/process/test_programs.py", "an engine that never listens"),
    "E1435": ("tests/engine/process/test_programs.py", "an engine that dies in a step"),
    "E1436": ("tests/engine/process/test_programs.py", "an engine that hangs"),
    "E1437": ("tests/engine/process/test_coordinator.py", "an engine that ends without a word"),
    "E1438": ("tests/engine/process/test_coordinator.py", "an engine that refuses a query"),
    "E1439": ("tests/engine/process/test_coordinator.py", "an engine that reports a failure"),
    "E1440": ("tests/engine/process/test_coordinator.py", "an engine that sends other bytes"),
    "E1441": ("tests/engine/process/test_coordinator.py", "an engine that leaves a link"),
    "E1442": ("tests/engine/process/test_coordinator.py", "an engine that counts wrongly"),
    "E1443": ("tests/engine/process/test_coordinator.py", "an engine with its own system time"),
    "E1444": ("tests/engine/process/test_coordinator.py", "an engine that adds a column"),
    "E1445": ("tests/engine/process/test_coordinator.py", "a checkpoint that is a folder"),
    "E1446": ("tests/engine/process/test_containers.py", "an engine that takes all memory"),
    "E1447": ("tests/engine/process/test_coordinator.py", "a version that is gone"),
    "E1448": ("tests/engine/process/test_coordinator.py", "a branch over a sample, with state"),
    "E1085": ("tests/store/test_keys.py", "a file that holds no keys"),
    "E1086": ("tests/store/test_keys.py", "another passphrase"),
    "E1087": ("tests/store/test_keys.py", "an environment without a passphrase"),
    "E1088": ("tests/store/test_keys.py", "a key of another dataset"),
    "E1330": ("tests/exchange/tables/kartothek/test_damaged.py", "a place without a dataset"),
    "E1331": ("tests/exchange/tables/kartothek/test_damaged.py", "a name with a blank"),
    "E1332": ("tests/exchange/tables/kartothek/test_damaged.py", "metadata that is cut off"),
    "E1333": ("tests/exchange/tables/kartothek/test_damaged.py", "metadata of versions 3 and 5"),
    "E1334": ("tests/exchange/tables/kartothek/test_damaged.py", "a table that is not there"),
    "E1335": ("tests/exchange/tables/kartothek/test_damaged.py", "a column that is not there"),
    "E1336": ("tests/exchange/tables/kartothek/test_damaged.py", "predicates of wrong types"),
    "E1337": ("tests/exchange/tables/kartothek/test_damaged.py", "a lost data file"),
    "E1338": ("tests/exchange/tables/kartothek/test_damaged.py", "an index that is cut off"),
    "E1339": ("tests/exchange/tables/kartothek/test_published.py", "a key with nulls"),
    "E1340": (
        "tests/exchange/tables/kartothek/test_published.py",
        "a truth value as a partition column",
    ),
    "E1341": ("tests/exchange/tables/kartothek/test_published.py", "a column of durations"),
    "E1342": ("tests/exchange/tables/kartothek/test_published.py", "an index on a struct"),
    "E1343": ("tests/exchange/tables/kartothek/test_published.py", "a foreign garbage collection"),
    "E1344": (
        "tests/exchange/tables/kartothek/test_published.py",
        "tables with other partition columns",
    ),
    "E1345": ("tests/exchange/tables/kartothek/test_published.py", "a foreign file in the folder"),
    "E1620": ("tests/stewardship/test_subject_keys.py", "keys of subjects without a wrapping key"),
    "E1621": ("tests/stewardship/test_subject_keys.py", "a place of keys that is a file"),
    "E1622": ("tests/stewardship/test_subject_keys.py", "another wrapping key"),
    "E1623": ("tests/stewardship/test_subject_keys.py", "a file of keys that is cut off"),
    "E1624": (
        "tests/stewardship/test_statements.py",
        "a file of statements that holds something else",
    ),
    "E1625": ("tests/stewardship/test_statements.py", "a statement that another key signed"),
    "E1626": ("tests/stewardship/test_statements.py", "a statement without the private key"),
    "E1627": ("tests/stewardship/test_subject_keys.py", "a machine without keys of subjects"),
    "E1628": ("tests/stewardship/test_subject_keys.py", "an erasure of nobody"),
    "E1630": ("tests/stewardship/test_statements.py", "an object that was withdrawn"),
    "E1631": ("tests/stewardship/test_retention.py", "records that a derivative needs"),
    "E1632": ("tests/stewardship/test_retention.py", "consent about what is kept"),
}
"""Codes that need more than a project and a machine, the tests that meet them, and by what."""

WITHIN = {
    "E0001": (
        "tests/cli/errors/test_errors_end.py",
        "several errors, each of which tells its own code",
    ),
    "E0310": (
        "tests/apply/derive/test_gone_inputs.py",
        "an input that goes after plan and its checks",
    ),
    "E0311": (
        "tests/apply/derive/test_gone_inputs.py",
        "an input that goes after plan and its checks",
    ),
    "E0330": (
        "tests/conformance/test_transform_planning.py",
        "a derivative without a transformation; definitions without one are refused (E0106)",
    ),
    "E0531": ("tests/odf/test_arrow_schema.py", "a type of Arrow that Spark never gives"),
    "E0603": (
        "tests/plan/test_rules_of_the_chain.py",
        "a block that does not follow the newest; in files that is one which is missing (E0802)",
    ),
    "E0610": ("tests/store/test_dataset_store.py", "a history that is rewritten while it is read"),
    "E0611": (
        "tests/conformance/test_chain_validation.py",
        "a rule of the specification for what peers send; there are no peers yet",
    ),
    "E0804": ("tests/inspect/verify/test_integrity.py", "a dataset that goes while it is verified"),
}
"""Codes that no wrong input shows, the tests that prove them, and what they stand for."""


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[int, Said]]:
    """What the program says of each case in a pipe, and on a terminal of one for each command.

    Where it writes decides how an error is shown, and nothing else; commands differ in what they
    show besides.
    """
    roots = wrong_projects(tmp_path_factory.mktemp("wrong"))
    jobs = [
        (root, case.command.split(), _environment(root, case))
        for root, case in zip(roots, CASES, strict=True)
    ]
    first_of = {case.command.split()[0]: n for n, case in reversed([*enumerate(CASES)])}
    return at_once(jobs, set(first_of.values()))


def _environment(root: Path, case: Case) -> dict[str, str]:
    own = {name: value.format(root=root) for name, value in case.env.items()}
    return {**NO_JVM, **NO_QUESTIONS, **own}


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[int, Said]]:
    """What `verify` says of the project with all flaws, in a pipe and on a terminal."""
    root = flawed_project(tmp_path_factory.mktemp("flawed"))
    return at_once([(root, ["verify", "--integrity"], NO_JVM)])


@pytest.mark.parametrize(
    ("number", "case"), [pytest.param(n, case, id=case.code) for n, case in enumerate(CASES)]
)
def test_a_wrong_input_meets_its_code(
    met: Mapping[str, Mapping[int, Said]], number: int, case: Case
) -> None:
    piped = met["pipe"][number]
    for said in (met[way][number] for way in WAYS if number in met[way]):
        assert f"error[{case.code}]" in said.plain
        assert f"see: odfbuild explain {case.code}\n" in said.plain
        assert "Traceback" not in said.text
        assert said.code == case.exit
    assert piped.text == piped.plain


@pytest.mark.parametrize("flaw", FLAWS, ids=[flaw.code for flaw in FLAWS])
def test_a_flaw_of_a_chain_is_found_with_its_code(
    verified: Mapping[str, Mapping[int, Said]], flaw: Flaw
) -> None:
    name = re.escape(f"{flaw.code.lower()}.{flaw.dataset}")
    for said in (said[0] for said in verified.values()):
        assert said.code == 3
        found = re.search(rf"^ +! {name}\n(.*?)(?=^ +! |\Z)", said.plain, re.M | re.S)
        assert found is not None
        assert f"error[{flaw.code}]" in found[1]
        assert f"see: odfbuild explain {flaw.code}\n" in said.plain


def test_a_terminal_shows_errors_in_colour(met: Mapping[str, Mapping[int, Said]]) -> None:
    assert f"\x1b[31;1merror[{CASES[0].code}]\x1b[0m" in met["terminal"][0].text


def test_every_code_is_met_or_cannot_be() -> None:
    met = [{case.code for case in CASES}, {flaw.code for flaw in FLAWS}]
    built = set(BUILT.values()) | set(AGAIN.values())
    groups = [*met, built, set(ELSEWHERE), set(WITHIN)]
    assert set().union(*groups) == set(error_codes())
    assert sum(map(len, groups)) == len(error_codes()), "a code is in two groups"


@pytest.mark.parametrize("code", sorted(ELSEWHERE | WITHIN))
def test_what_is_met_elsewhere_is_named_there(code: str) -> None:
    file, _ = (ELSEWHERE | WITHIN)[code]
    assert code in (ROOT / file).read_text()
