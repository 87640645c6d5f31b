"""The web process around the protocols: connections and their limits, admission, health, and log lines."""

from irc_bridge.server.app import create_app

__all__ = ["create_app"]
