"""The Lance REST Namespace protocol, under /lance. One table of endpoints, one file for each kind of object.

It sees a backend only through `catalog.ports`.
"""
