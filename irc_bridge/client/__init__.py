"""A Lance namespace over any Iceberg REST catalog, for the user's own Python process.

lance_namespace.connect("irc_bridge.client.IcebergRestNamespace", {"uri": "http://localhost:8181"})
"""

from irc_bridge.client.namespace import IcebergRestNamespace

__all__ = ["IcebergRestNamespace"]
