#!/usr/bin/env bash
# Runs a command with what some faults of the chaos suite need: libfaketime, which lets a worker's clock
# jump, and strace, which makes its disk slow, are installed where they are missing, which takes Debian's
# apt-get and root. Without them, and without root for a small disk that can be filled up, these faults
# are left out, and the report says so.
set -euo pipefail

# A package, and what is missing without it.
need() {
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install --yes --quiet --no-install-recommends "$1" >/dev/null ||
      echo "$1 can't be installed: $2" >&2
  else
    echo "$1 is not installed: $2" >&2
  fi
}

ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || need faketime "clocks do not jump"
command -v strace >/dev/null || need strace "no disk is slow"
exec "$@"
