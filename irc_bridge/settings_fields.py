"""The types of the values of settings, and the settings that every warehouse has. Each backend adds its own
settings in `backends/*/settings.py`."""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from irc_bridge.durations import milliseconds


def _no_boolean(value: object) -> object:
    if isinstance(value, bool):  # pydantic takes true for 1
        raise ValueError("Input should be a valid integer")
    return value


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _seconds(value: object) -> float:
    return milliseconds(value) / 1000


def _duration_or_never(value: object) -> str:
    if value != "never":
        milliseconds(value)
    return str(value)


def _as_list(value: object) -> object:
    """A list of texts; an environment variable holds them with commas in between."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Integer = Annotated[int, BeforeValidator(_no_boolean)]
StorageText = Annotated[str, BeforeValidator(_as_text)]
Seconds = Annotated[float, BeforeValidator(_seconds)]
DurationOrNever = Annotated[str, BeforeValidator(_duration_or_never)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_as_list)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WarehouseSettings(Section):
    backend: str
    root: str | None = Field(default=None, min_length=1, repr=False)
    default_managed_by: Literal["storage", "impl"] = "storage"
    mirror_lag: Literal["serve-mirrored", "serve-latest"] = "serve-mirrored"
    read_only: bool = False
    vend_credentials: bool = False
    guard_snapshot: bool = True
    allow_expire: bool = False
    purge_after: DurationOrNever = "7d"
    schema_ids: Literal["first-version", "always-1"] = "first-version"
    allowed_locations: Texts = Field(default=(), repr=False)
    storage: dict[str, StorageText] = Field(default={}, repr=False)

    @property
    def place(self) -> str:
        """Where the tables are kept, as a person is told."""
        raise TypeError(f"{type(self).__name__} has no place")

    @property
    def folder_to_make(self) -> str | None:
        """The folder that `serve` makes where the settings name none."""
        return None

    @property
    def passes_authorization(self) -> bool:
        """Whether the Authorization header of a client is for the server behind."""
        return False

    @property
    def keeps_iceberg_tables(self) -> bool:
        """Whether Iceberg tables lie beside the Lance tables."""
        return False
