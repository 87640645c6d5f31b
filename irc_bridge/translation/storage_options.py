"""Lance's storage options under the names that Iceberg's file readers know."""

from collections.abc import Mapping

ICEBERG_NAMES = {
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "endpoint": "s3.endpoint",
    "region": "client.region",
}


def iceberg_options(options: Mapping[str, str]) -> dict[str, str]:
    named = {}
    for key, value in options.items():
        iceberg = ICEBERG_NAMES.get(key.lower().removeprefix("aws_"))
        if iceberg:
            named[iceberg] = value
    if "s3.endpoint" in named and options.get("aws_virtual_hosted_style_request", "false") != "true":
        named["s3.path-style-access"] = "true"
    return named
