#!/usr/bin/env bash
# Runs a command with an S3-compatible server of its own on loopback, and stops it again:
#
#   chaos/with-s3.sh target/debug/tributary chaos --minutes 2
#
# The server is moto of the version in chaos/s3.txt, from pip's index; its Python environment is made once,
# under ~/.cache/tributary/python (XDG_CACHE_HOME is respected). It listens at a free port, takes any keys,
# and keeps everything in memory. The command finds its address in TRIBUTARY_CHAOS_S3. Where that is set
# already, nothing is started.
set -euo pipefail

[ $# -gt 0 ] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }

say() { printf '%s\n' "with-s3: $*" >&2; }

if [ -n "${TRIBUTARY_CHAOS_S3:-}" ]; then
  say "the server at $TRIBUTARY_CHAOS_S3 is taken"
  exec "$@"
fi

here=$(cd "$(dirname "$0")" && pwd)
home=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$home"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Which Python has the packages; installing them may take a while, starting the server may not.
python=$("$here/../integration/python/with-packages.sh" "$here/s3.txt" sh -c 'command -v python')

# Asks a server for its buckets, which it lists only once it is up.
is_up() {
  "$python" - "$1" >/dev/null 2>&1 <<'PYTHON'
import sys, urllib.request
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
direct.open(sys.argv[1], timeout=2).read()
PYTHON
}

# Somebody else may take the port before the server has it: then there is another try.
for attempt in 1 2 3; do
  port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  endpoint=http://127.0.0.1:$port
  "$python" -m moto.server -H 127.0.0.1 -p "$port" > "$home/log" 2>&1 < /dev/null &
  server=$!
  until_s=$((SECONDS + 60))
  while kill -0 "$server" 2>/dev/null && [ "$SECONDS" -lt "$until_s" ]; do
    if is_up "$endpoint" && kill -0 "$server" 2>/dev/null; then break 2; fi
    sleep 0.2
  done
  say "the server did not come up (attempt $attempt); the end of its log:"
  tail -20 "$home/log" >&2
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
  [ "$attempt" -lt 3 ] || exit 1
done

say "moto $(sed -n 's/^moto\[server\]==//p' "$here/s3.txt") at $endpoint"
export TRIBUTARY_CHAOS_S3=$endpoint
"$@"
