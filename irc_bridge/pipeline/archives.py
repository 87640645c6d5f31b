import sys
from zipimport import zipimporter


def keep_archives_read() -> None:
    """Spark has its Python workers look for new modules before each task. Python then reads the lists of all
    archives on its path anew, which takes ten times as long as the rest of a small task; they never change."""
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, zipimporter):
            finder.invalidate_caches = _nothing_new  # type: ignore[method-assign]


def _nothing_new() -> None:
    return
