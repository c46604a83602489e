#!/usr/bin/env bash
# Runs a command with what some faults of the chaos suite need: libfaketime, which lets a worker's clock
# jump, is installed where it is missing, which takes Debian's apt-get and root. Without it, and without
# root for a small disk that can be filled up, these faults are left out, and the report says so.
set -euo pipefail
if ! ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install --yes --quiet --no-install-recommends faketime >/dev/null ||
      echo "libfaketime can't be installed: clocks do not jump" >&2
  else
    echo "libfaketime is not installed: clocks do not jump" >&2
  fi
fi
exec "$@"
