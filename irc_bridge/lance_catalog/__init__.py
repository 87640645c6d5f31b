"""A catalog of Lance tables over any keeper of names (`names.Names`) and any keeper of versions
(`versions.Versions`). `catalog.LanceCatalog` is the one class that a backend hands out."""
