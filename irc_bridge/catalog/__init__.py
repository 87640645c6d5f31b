"""The words and the ports of a catalog. No HTTP, no storage."""
