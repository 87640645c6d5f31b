from dataclasses import dataclass

from irc_bridge.lance_store.storage import Storage


@dataclass(frozen=True, slots=True)
class FirstFile:
    """The file that makes a folder a table: the manifest of version 1, or a marker. Its content is like that of
    no other, so that a creator knows its own file from one that another put there after a drop."""

    storage: Storage
    path: str
    content: bytes

    def put(self) -> bool:
        """False when there is one already. When a first answer was lost, what is there already is our own."""
        return self.storage.put_if_absent(self.path, self.content) or self.is_there()

    def is_there(self) -> bool:
        return self.storage.read(self.path) == self.content

    def is_whole(self) -> bool:
        """Whether it is there with all files that it names: a drop takes those too that were there before it."""
        return self.is_there()

    def remove(self) -> None:
        if self.is_there():
            self.storage.delete(self.path)
