"""What a user's own Python process imports: a Lance namespace over any Iceberg REST catalog.

lance_namespace.connect("irc_bridge.client.IcebergRestNamespace", {"uri": "http://localhost:8181"})
"""

from irc_bridge.client.namespace import IcebergRestNamespace

__all__ = ["IcebergRestNamespace"]
