#!/usr/bin/env bash
# Runs a command with a Python on its path that has the packages of a list:
#
#   integration/python/with-packages.sh integration/python/control.txt \
#     python integration/python/control_check.py BINARY
#
# The environment is made once, under ~/.cache/tributary/python (XDG_CACHE_HOME is respected), and made
# anew when the list changes. Where Python lacks the module venv, Debian's package is installed, which
# takes apt-get and root.
set -euo pipefail

[ $# -gt 1 ] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }
list=$1
shift

say() { printf '%s\n' "with-packages: $*" >&2; }

home=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
home=${home:-/tmp}/tributary/python
mkdir -p "$home"
# One at a time: two that install into the same place would hurt each other.
if command -v flock >/dev/null; then
  exec 8> "$home/lock"
  flock 8
fi

python=$(command -v python3) || {
  say "installing python3"
  apt-get update -qq && apt-get install -y -qq python3 python3-venv >/dev/null
  python=$(command -v python3)
}

# The name says what is in it and for which Python, so that a change of either makes another one.
wanted=$({ cat "$list"; "$python" --version; } | sha256sum | cut -c1-16)
environment=$home/venv-$wanted
if [ ! -e "$environment/complete" ]; then
  rm -rf "$environment"
  if ! "$python" -m venv "$environment" >/dev/null 2>&1; then
    say "installing python3-venv"
    rm -rf "$environment"
    apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
    "$python" -m venv "$environment"
  fi
  say "installing what $list names into $environment"
  for attempt in 1 2 3; do
    if "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
      --only-binary :all: --requirement "$list"; then
      break
    fi
    [ "$attempt" -lt 3 ] || { say "pip failed three times"; exit 1; }
    say "pip failed; trying again"
    sleep $((attempt * 5))
  done
  touch "$environment/complete"
fi
if command -v flock >/dev/null; then exec 8>&-; fi

PATH=$environment/bin:$PATH exec "$@"
