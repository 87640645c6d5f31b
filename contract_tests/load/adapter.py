"""pylance's RestAdapter over a folder, until the process is ended. More arguments are properties of it."""

import signal
import sys

from lance.namespace import RestAdapter

if __name__ == "__main__":
    root, port, *properties = sys.argv[1:]
    named = dict(each.split("=", 1) for each in properties)
    with RestAdapter("dir", {"root": root, **named}, port=int(port)):
        signal.sigwait([signal.SIGTERM, signal.SIGINT])
