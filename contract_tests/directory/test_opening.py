from pathlib import Path

import pytest

from irc_bridge.backends.directory import open_directory
from irc_bridge.errors import InvalidInput


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"manifest_enabled": False, "dir_listing_enabled": False}, "neither manifest_enabled nor"),
        ({"manifest_enabled": False, "table_version_management": True}, "needs manifest_enabled"),
    ],
)
def test_settings_that_do_not_fit_are_refused(root: Path, options: dict[str, bool], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        open_directory(str(root), **options)  # type: ignore[arg-type]
    assert list(root.iterdir()) == []
