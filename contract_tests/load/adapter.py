"""pylance's RestAdapter over a folder, until the process is ended."""

import signal
import sys

from lance.namespace import RestAdapter

if __name__ == "__main__":
    with RestAdapter("dir", {"root": sys.argv[1]}, port=int(sys.argv[2])):
        signal.sigwait([signal.SIGTERM, signal.SIGINT])
