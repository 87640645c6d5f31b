from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from contract_tests.engines.every_version import (
    Engine,
    instant,
    require_every_version,
    require_inner_fields,
    require_times,
)
from contract_tests.engines.mirror_lake import HELD, MAKERS, ODD_NAMES, Place
from contract_tests.engines.questions import (
    COLUMNS,
    in_one_query,
    questions_about,
    require_answers,
    text_of,
)
from contract_tests.engines.same_rows import Row, of_json
from contract_tests.worlds.bridge import GUARD
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.trino import Trino, TrinoError, trino_server


def settings_of(place: Place) -> dict[str, str]:
    settings = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": place.url,
        "iceberg.rest-catalog.warehouse": "main",
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
        "iceberg.rest-catalog.case-insensitive-name-matching": "true",
    }
    s3 = place.s3_properties
    if not s3:
        return {**settings, "fs.hadoop.enabled": "true"}
    return {
        **settings,
        "fs.native-s3.enabled": "true",
        "s3.endpoint": s3["s3.endpoint"],
        "s3.path-style-access": "true",
        "s3.region": s3["client.region"],
        "s3.aws-access-key": s3["s3.access-key-id"],
        "s3.aws-secret-key": s3["s3.secret-access-key"],
    }


@pytest.fixture(scope="module")
def trino(places: list[Place], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    catalogs = {place.catalog: settings_of(place) for place in places}
    try:
        probe = f"SELECT count(id) FROM {of(places[0], 'types', 1)}"
        with trino_server(tmp_path_factory.mktemp("trino"), catalogs, probe) as trino:
            yield trino
    except CannotRun as reason:
        pytest.skip(f"Trino: {reason}")


@pytest.fixture(scope="module")
def engine(trino: Trino) -> Engine:
    def rows(place: Place, name: str, version: int, schema: pa.Schema) -> list[Row]:
        return of_json(*trino.run(f"SELECT * FROM {of(place, name, version)}"), schema)

    def count(place: Place, name: str, version: int) -> int:
        ((counted,),) = trino.rows(f"SELECT count(*) FROM {of(place, name, version)}")
        return counted  # type: ignore[no-any-return]

    return Engine(rows, count)


def named(place: Place, name: str) -> str:
    return f'{place.catalog}.{place.namespace}."{name}"'


def of(place: Place, name: str, version: int) -> str:
    return f"{named(place, name)} FOR VERSION AS OF BIGINT '{version}'"


def test_by_time(trino: Trino, place: Place) -> None:
    def rows(moment: int, schema: pa.Schema) -> list[Row]:
        as_of = f"FOR TIMESTAMP AS OF TIMESTAMP '{instant(moment):%Y-%m-%d %H:%M:%S.%f} UTC'"
        return of_json(*trino.run(f"SELECT * FROM {named(place, 'life')} {as_of}"), schema)

    require_times(place, rows)


def test_by_tag(trino: Trino, place: Place) -> None:
    ((counted,),) = trino.rows(f"SELECT count(*) FROM {named(place, 'life')} FOR VERSION AS OF 'two-fragments'")
    assert counted == place.tables["life"].open(2).count_rows()


def test_fields_of_structs(trino: Trino, place: Place) -> None:
    inner = 'place."where", transform(places, each -> each."at")'
    found = trino.rows(f"SELECT id, {inner} FROM {named(place, 'nested')} WHERE place.\"where\" < 'at 7'")
    require_inner_fields(place, [tuple(row) for row in found])


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_filters(trino: Trino, local_place: Place, table: str, column: str) -> None:
    name = named(local_place, table)
    type_ = {each[0]: each[1] for each in trino.rows(f"DESCRIBE {name}")}[column.lower()]

    def literal(value: Any) -> str:
        if isinstance(value, bytes):
            return f"X'{value.hex()}'"
        text = text_of(value).replace("+00:00", " UTC").replace("inf", "Infinity")
        return f"CAST('{text}' AS {type_})"

    asked = questions_about(local_place, table)[column]
    require_answers(asked, trino.rows(in_one_query(name, f'"{column}"', asked, literal)))


METADATA_TABLES = ["entries", "files", "history", "manifests", "partitions", "properties"]


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_metadata_tables(trino: Trino, place: Place, name: str) -> None:
    found = trino.rows(f"SELECT * FROM {named(place, f'life${name}')}")
    assert found
    if name == "files":
        found = trino.rows(f"SELECT record_count FROM {named(place, 'life$files')} WHERE content = 0")
        fragments = place.tables["life"].open().get_fragments()
        assert sum(count for (count,) in found) == sum(each.physical_rows for each in fragments)


@pytest.mark.parametrize("name", ["all_entries", "all_manifests"])
def test_metadata_tables_over_all_snapshots(trino: Trino, place: Place, name: str) -> None:
    """Which need the guard snapshot's list."""
    with pytest.raises(TrinoError, match=GUARD):
        trino.run(f"SELECT * FROM {named(place, f'life${name}')}")


@pytest.mark.parametrize("name", ["metadata_log_entries", "refs", "snapshots"])
def test_metadata_tables_that_name_the_metadata_file(trino: Trino, local_place: Place, name: str) -> None:
    """Which a Lance table has none of, by seed 004."""
    with pytest.raises(TrinoError, match="location is null"):
        trino.run(f"SELECT * FROM {named(local_place, f'life${name}')}")


def test_a_new_version_is_seen(trino: Trino, local_place: Place) -> None:
    table = local_place.tables[HELD]
    version = table.open().version
    ((before,),) = trino.rows(f"SELECT count(*) FROM {named(local_place, HELD)}")
    table.write(table.open().to_table().slice(0, 1), mode="append")
    table.bring([version + 1])
    assert trino.rows(f"SELECT count(*) FROM {named(local_place, HELD)}") == [[before + 1]]


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(engine: Engine, place: Place, name: str) -> None:
    require_every_version(engine, place, name)
