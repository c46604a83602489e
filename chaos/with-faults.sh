#!/usr/bin/env bash
# Runs a command with what some faults of the chaos suite need: libfaketime, which lets a worker's clock
# jump, strace, which makes its disk slow, and ip, tc, ss and nft, which give every worker a network of its
# own. What is missing is installed, which takes Debian's apt-get and root. Without libfaketime or strace,
# and without root for a small disk that can be filled up, these faults are left out; without the other
# tools, or root, a proxy stands in for the network. The report says so.
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

# Where Debian keeps them, which is not everybody's path.
PATH="$PATH:/usr/sbin:/sbin"
export PATH

ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || need faketime "clocks do not jump"
for tool in ip tc ss; do
  command -v "$tool" >/dev/null || { need iproute2 "a proxy stands in for the network" && break; }
done
command -v nft >/dev/null || need nftables "a proxy stands in for the network"
command -v strace >/dev/null || need strace "no disk is slow"
exec "$@"
