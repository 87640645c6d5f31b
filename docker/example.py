"""What services of compose.yaml run beside irc-bridge: `secrets`, `tables`, `rows TABLE` or `spark-sql ...`."""

import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

SECRETS = Path("/run/irc-bridge")
SECONDS = 60
JARS = Path("/opt/irc-bridge/jars")


def make_secrets() -> None:
    """Makes a token and the keys of the S3 server, if there are none. Who mounts them may read them."""
    if (SECRETS / "token").exists():
        return
    access_key, secret_key = secrets.token_hex(8), secrets.token_hex(20)
    credentials = [{"accessKey": access_key, "secretKey": secret_key}]
    actions = ["Admin", "Read", "List", "Tagging", "Write"]
    identities = {"identities": [{"name": "irc-bridge", "credentials": credentials, "actions": actions}]}
    files = {
        "s3.json": json.dumps(identities, indent=1),
        "aws": f"[default]\naws_access_key_id = {access_key}\naws_secret_access_key = {secret_key}\n",
        "access_key": access_key,
        "secret_key": secret_key,
        "token": secrets.token_urlsafe(32),  # the last one: where it is, all are
    }
    for name, content in files.items():
        (SECRETS / name).write_text(content)
        (SECRETS / name).chmod(0o644)


def make_tables() -> None:
    """Makes the bucket, and the tables of `irc-bridge demo` with their Parquet mirror."""
    from irc_bridge.cli.backends import open_warehouses
    from irc_bridge.cli.demo import make_sample_tables
    from irc_bridge.cli.options import settings_of

    settings = settings_of(None)
    warehouse = settings.warehouses["main"]
    options = {key.upper(): value for key, value in warehouse.storage.items()}
    os.environ.update(options | {"AWS_ALLOW_HTTP": options.get("ALLOW_HTTP", "false")})
    make_bucket(str(warehouse.root).removeprefix("s3://").partition("/")[0], warehouse.storage)
    warehouses = open_warehouses(settings)
    if not warehouses["main"].catalog.table_exists(("orders",)) and not make_sample_tables(warehouses):
        raise SystemExit(1)


def make_bucket(name: str, options: dict[str, str]) -> None:
    """Waits for the S3 server, which may have just been started."""
    from pyarrow.fs import S3FileSystem

    files = S3FileSystem(
        access_key=options["aws_access_key_id"],
        secret_key=options["aws_secret_access_key"],
        endpoint_override=options["aws_endpoint"],
        region=options["aws_region"],
        allow_bucket_creation=True,
    )
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            files.create_dir(name)
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def print_rows(table: str) -> None:
    """Reads a table with pyiceberg, through the bridge."""
    from pyiceberg.catalog import load_catalog

    token = (SECRETS / "token").read_text()
    deadline = time.monotonic() + SECONDS
    while subprocess.run(["irc-bridge", "health", "http://bridge:8181"], capture_output=True).returncode:
        assert time.monotonic() < deadline, "the bridge is not ready"
        time.sleep(0.5)
    catalog = load_catalog("irc", type="rest", uri="http://bridge:8181", warehouse="main", token=token)
    rows = catalog.load_table(table).scan().to_arrow()
    print(*rows.slice(0, 3).to_pylist(), f"{rows.num_rows} rows", sep="\n")


def spark_sql(arguments: list[str]) -> None:
    """Runs spark-sql with the settings that `irc-bridge connect spark` prints. The token is in a file, since every
    process can read a command line."""
    command = ["irc-bridge", "connect", "spark", "--warehouse", "main", "--host", "bridge", "--output", "json"]
    settings = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    del settings["spark.jars.packages"]
    settings |= {
        "spark.sql.catalog.irc.token": (SECRETS / "token").read_text(),
        "spark.sql.catalog.irc.header.X-Iceberg-Access-Delegation": "vended-credentials",
        "spark.sql.catalog.irc.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "spark.jars": ",".join(map(str, JARS.glob("*.jar"))),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": "/tmp/spark-warehouse",
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.log.level": "WARN",
    }
    file = Path("/tmp/spark.conf")
    file.touch(0o600)
    file.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    os.execvp("spark-sql", ["spark-sql", "--properties-file", str(file), *arguments])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["secrets"]:
            make_secrets()
        case ["tables"]:
            make_tables()
        case ["rows", table]:
            print_rows(table)
        case ["spark-sql", *arguments]:
            spark_sql(arguments)
        case _:
            raise SystemExit(__doc__)
