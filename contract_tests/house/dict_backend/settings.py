from typing import Literal

from irc_bridge.settings_fields import WarehouseSettings


class BackendSettings(WarehouseSettings):
    backend: Literal["dict"] = "dict"

    @property
    def place(self) -> str:
        return str(self.root)
