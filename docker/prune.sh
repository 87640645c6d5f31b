#!/bin/sh
# Removes from a virtual environment what neither the server nor the jobs ever load, and the symbols of native code.
#   sh prune.sh /opt/irc-bridge
set -eu
cd "$1"/lib/python3*/site-packages

# Arrow Flight is another protocol; headers and sources are for programs that compile against a package.
rm -rf pyarrow/*flight* pyarrow/include pyarrow/includes pyarrow/src pyarrow/*.pyx pyarrow/*.pxi
rm -rf numpy/f2py numpy/distutils uvloop/*.pyx uvloop/*.pxd hive_metastore fb303
find . -type d -name tests -not -path './hypothesis/*' -prune -exec rm -rf {} +
rm -rf pyspark/examples pyspark/licenses pyspark/data pyspark/jars/connect-repl

# The wheel holds one library three times, because wheels have no links.
library=$(ls pyarrow/libarrow_python.so.*.*.* 2>/dev/null || true)
for copy in pyarrow/libarrow_python.so pyarrow/libarrow_python.so.*; do
    if [ -n "$library" ] && [ "$copy" != "$library" ] && [ ! -L "$copy" ]; then
        ln -sf "$(basename "$library")" "$copy"
    fi
done

# The stage that adds Spark has no strip, and needs none.
command -v strip >/dev/null || exit 0
# Not those of numpy and pandas: the tool that bundled their libraries leaves them in a form that strip breaks.
for package in httptools obstore pyroaring* uvloop zstandard pyarrow/libarrow*; do
    find "$package" -type f -name '*.so*' -exec strip --strip-unneeded {} +
done
