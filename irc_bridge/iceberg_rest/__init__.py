"""The Iceberg REST protocol. One table of endpoints, one file per part of the specification.

It sees a backend only through `catalog.ports`.
"""
