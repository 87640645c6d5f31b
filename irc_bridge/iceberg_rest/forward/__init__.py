"""Requests to a warehouse that another server keeps. That server answers them; only a load, a create, a commit and
a purge look whether a Lance table is meant, which the bridge's own handlers then serve."""
