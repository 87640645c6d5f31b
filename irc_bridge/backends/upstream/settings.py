"""The settings of another IRC server."""

import re
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from irc_bridge.settings_fields import Seconds, WarehouseSettings


class UpstreamSettings(WarehouseSettings):
    backend: Literal["irc"]
    uri: str = Field(repr=False)
    warehouse: str | None = None
    prefix: str | None = None
    token: SecretStr | None = None
    credential: SecretStr | None = None
    auth: Literal["passthrough"] | None = None
    oauth2_server_uri: str | None = None
    scope: str = "catalog"
    connect_timeout: Seconds = Field(default=10, gt=0, le=3600)
    read_timeout: Seconds = Field(default=60, gt=0, le=3600)
    root: str | None = Field(default=None, min_length=1, repr=False)
    headers: dict[str, str] = Field(default={}, repr=False)

    @field_validator("uri")
    @classmethod
    def _is_http(cls, uri: str) -> str:
        if not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", uri):
            raise ValueError("Input should be the http(s) address of an Iceberg REST catalog")
        return uri.rstrip("/").removesuffix("/v1")

    @model_validator(mode="after")
    def _is_one_identity(self) -> Self:
        given = [name for name in ("token", "credential", "auth") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other: give one of them")
        return self

    @property
    def place(self) -> str:
        return f"{self.warehouse} of {self.uri}" if self.warehouse else self.uri

    @property
    def passes_authorization(self) -> bool:
        return self.auth is not None

    @property
    def keeps_iceberg_tables(self) -> bool:
        return True


BackendSettings = UpstreamSettings
