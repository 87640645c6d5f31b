"""The web process: auth, limits, health, request ids and log lines around the protocols."""

from irc_bridge.server.app import create_app

__all__ = ["create_app"]
