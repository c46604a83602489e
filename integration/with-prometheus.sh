#!/usr/bin/env bash
# Runs a command that can find a Prometheus of version 3 and its promtool:
#
#   integration/with-prometheus.sh cargo test -p tributary-integration --test differential
#
# TRIBUTARY_PROMETHEUS and TRIBUTARY_PROMTOOL name the binaries, for the command and, where they are set
# already, for this script too. Else the one on the PATH is taken if it is new enough, else Debian's
# newest packages are unpacked, once, under ~/.cache/tributary/prometheus (XDG_CACHE_HOME is respected). Nothing is
# installed and no server is started: the tests start their own, on loopback.
set -euo pipefail

[ $# -gt 0 ] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }

say() { printf '%s\n' "with-prometheus: $*" >&2; }

# The first line says: prometheus, version 3.5.0 (…
new_enough() {
  local version
  version=$("$1" --version 2>&1 | sed -n '1s/^prometheus, version \([0-9]*\)\..*/\1/p') || return 1
  [ -n "$version" ] && [ "$version" -ge 3 ]
}

# Debian's newest package, with lists and a cache of our own so that the system's stay as they are.
unpack() {
  local home=$1 mirror
  mkdir -p "$home/apt/lists/partial" "$home/apt/cache/archives/partial"
  # The machine's own mirror, with the newest suite in place of the installed one.
  mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
    grep -oE 'https?://[^ ]+/debian/?( |$)' | head -1 | tr -d ' ') || true
  [ -n "$mirror" ] || { say "no Debian mirror found among the apt sources"; return 1; }
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" > "$home/apt/sources.list"
  cat > "$home/apt/apt.conf" <<CONF
Dir::Etc::sourcelist "$home/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$home/apt/lists";
Dir::Cache "$home/apt/cache";
Acquire::Languages "none";
Acquire::Retries "3";
CONF
  (
    cd "$home"
    export APT_CONFIG=$home/apt/apt.conf
    rm -rf -- *.deb root.new
    apt-get update -qq && apt-get download -qq prometheus promtool &&
      for package in ./*.deb; do dpkg-deb -x "$package" root.new; done &&
      rm -rf root && mv root.new root && rm -rf apt/lists apt/cache -- *.deb
  ) > "$home/log" 2>&1 || { cat "$home/log" >&2; return 1; }
}

if [ -n "${TRIBUTARY_PROMETHEUS:-}" ]; then
  new_enough "$TRIBUTARY_PROMETHEUS" || { say "$TRIBUTARY_PROMETHEUS is no Prometheus 3"; exit 1; }
elif command -v prometheus >/dev/null && new_enough prometheus; then
  TRIBUTARY_PROMETHEUS=$(command -v prometheus)
else
  home=${XDG_CACHE_HOME:-$HOME/.cache}/tributary/prometheus
  mkdir -p "$home"
  # Several clones may come here at once; one unpacks, the others wait and find it there.
  exec 8> "$home/lock"
  if command -v flock >/dev/null; then flock 8; fi
  if ! new_enough "$home/root/usr/bin/prometheus" || [ ! -x "$home/root/usr/bin/promtool" ]; then
    say "unpacking Debian's newest prometheus under $home"
    unpack "$home"
    new_enough "$home/root/usr/bin/prometheus" || { say "what was unpacked is no Prometheus 3"; exit 1; }
  fi
  exec 8>&-
  TRIBUTARY_PROMETHEUS=$home/root/usr/bin/prometheus
fi

export TRIBUTARY_PROMETHEUS
export TRIBUTARY_PROMTOOL=${TRIBUTARY_PROMTOOL:-$(dirname "$TRIBUTARY_PROMETHEUS")/promtool}
say "$("$TRIBUTARY_PROMETHEUS" --version 2>&1 | sed -n 1p) at $TRIBUTARY_PROMETHEUS"
"$@"
