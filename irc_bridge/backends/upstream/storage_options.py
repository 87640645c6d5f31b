"""Storage options that a server vends under Iceberg's names, under the names that Lance knows."""

import re
from collections.abc import Mapping

EXPIRES_AT = "expires_at_millis"
"""Lance asks the namespace again some time before."""
_NAMES = {
    "s3.access-key-id": "aws_access_key_id",
    "s3.secret-access-key": "aws_secret_access_key",
    "s3.session-token": "aws_session_token",
    "s3.endpoint": "aws_endpoint",
    "s3.region": "aws_region",
    "client.region": "aws_region",
    "s3.session-token-expires-at-ms": EXPIRES_AT,
    "gcs.oauth2.token": "google_storage_token",
    "gcs.oauth2.token-expires-at": EXPIRES_AT,
}
_SAS_TOKEN = re.compile(r"adls\.sas-token\.([^.]+)(\..*)?")
_SAS_EXPIRY = re.compile(r"adls\.sas-token-expires-at-ms\..*")
_LANCE_NAME = re.compile(r"(aws|azure|google|gcp|allow|client|expires)_[a-z0-9_]+")
_SHORT_NAMES = {
    "access_key_id",
    "account_key",
    "account_name",
    "endpoint",
    "region",
    "sas_token",
    "secret_access_key",
    "service_account_key",
    "session_token",
    "virtual_hosted_style_request",
}
_CREDENTIALS = (
    "access_key",
    "access_key_id",
    "account_key",
    "bearer_token",
    "client_secret",
    "sas_token",
    "secret_access_key",
    "service_account",
    "service_account_key",
    "session_token",
    "storage_token",
)
_PROVIDER = re.compile(r"^(aws|azure_storage|azure|google)_")


def holds_credentials(options: Mapping[str, str]) -> bool:
    return any(_bare(key) in _CREDENTIALS for key in options)


def lance_options(configured: Mapping[str, str], vended: Mapping[str, str]) -> dict[str, str]:
    """The storage options for Lance. Options that the user configured go before those of the server. With
    configured credentials, vended ones are left out: the keys of one and the tokens of the other do not fit
    together."""
    ours = {_bare(key) for key in configured}
    if holds_credentials(configured):
        ours |= {*_CREDENTIALS, _bare(EXPIRES_AT)}
    theirs = {key: each for key, each in _translated(vended).items() if _bare(key) not in ours}
    return {**theirs, **configured}


def expires_at_ms(options: Mapping[str, str]) -> int | None:
    at = options.get(EXPIRES_AT, "")
    return int(at) if at.isdigit() else None


def without_expiry(options: Mapping[str, str]) -> dict[str, str]:
    return {key: each for key, each in options.items() if key != EXPIRES_AT}


def _translated(vended: Mapping[str, str]) -> dict[str, str]:
    options = {key: each for key, each in vended.items() if _LANCE_NAME.fullmatch(key) or key in _SHORT_NAMES}
    named = {name: vended[key] for key, name in _NAMES.items() if key in vended}
    for key, each in vended.items():
        if match := _SAS_TOKEN.fullmatch(key):
            named |= {"azure_storage_sas_token": each, "azure_storage_account_name": match[1]}
        elif _SAS_EXPIRY.fullmatch(key):
            named[EXPIRES_AT] = each
    if (path_style := vended.get("s3.path-style-access")) is not None:
        named["aws_virtual_hosted_style_request"] = "false" if path_style.lower() == "true" else "true"
    if named.get("aws_endpoint", "").startswith("http://"):
        named["allow_http"] = "true"
    known = {_bare(key) for key in options}
    return {**{key: each for key, each in named.items() if _bare(key) not in known}, **options}


def _bare(key: str) -> str:
    return _PROVIDER.sub("", key.lower())
