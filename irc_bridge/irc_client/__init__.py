"""Speaks to another Iceberg REST server: its operations (`server.IrcServer`), forwarded requests (`relay.Relay`),
and a Lance table as such a server keeps it (`lance_tables`). Everything that comes from the server is limited and
checked here."""
