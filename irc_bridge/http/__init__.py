"""HTTP for both protocols: a request as its handler gets it, routing on the raw path, bodies, replies, and the
cache of finished answers."""
