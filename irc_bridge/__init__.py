"""Lance tables for every client of the Iceberg REST Catalog (IRC)."""

__version__ = "0.1.0"
