"""The settings of a folder of Lance tables."""

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from irc_bridge.settings_fields import WarehouseSettings


class DirectorySettings(WarehouseSettings):
    backend: Literal["dir"] = "dir"
    root: str = Field(min_length=1, repr=False)
    manifest_enabled: bool = True
    dir_listing_enabled: bool = True
    table_version_management: bool = False
    root_namespace: str = "default"

    @field_validator("root_namespace")
    @classmethod
    def _is_a_plain_name(cls, name: str) -> str:
        if name in {".", ".."} or not re.fullmatch(r"[^\x00-\x1f\x7f/$]+", name):
            raise ValueError("Input should be a name without '/', '$' and control characters")
        return name

    @property
    def place(self) -> str:
        return self.root if "://" in self.root else str(Path(self.root).absolute())

    @property
    def folder_to_make(self) -> str | None:
        return self.root


BackendSettings = DirectorySettings
