#!/usr/bin/env bash
# What clients see, by clients that nobody here wrote: promtool, a Python client of Prometheus, a
# plain EventSource in Node, and schemathesis with requests of its own making.
#
#   integration/with-prometheus.sh integration/clients/check.sh BINARY
#
# Imports a few samples with BINARY, serves them with one API node and three workers, and asks. The
# packages are installed once, under ~/.cache/tributary; Node is installed where it is missing, which
# takes Debian's apt-get and root.
#
#   TRIBUTARY_SCHEMATHESIS_EXAMPLES   requests for each operation of the description (20)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:?which binary?}")
promtool=${TRIBUTARY_PROMTOOL:?run it by way of integration/with-prometheus.sh}

work=$(mktemp -d)
cluster=
finish() {
  if [ -n "$cluster" ]; then kill "$cluster" 2>/dev/null && wait "$cluster" || true; fi
  rm -rf "$work"
}
trap finish EXIT

fail() { printf 'clients: %s\n' "$*" >&2; exit 1; }
same() { # what, found, wanted
  [ "$2" = "$3" ] || fail "$1: found"$'\n'"$2"$'\n'"instead of"$'\n'"$3"
  echo "ok  $1"
}

# Two counters that rise by 1 and 2 a second, and a gauge, for an hour from a fixed time on.
begin=1700000000
awk -v begin=$begin 'BEGIN {
  print "# TYPE hits counter"
  for (host = 1; host <= 2; host++)
    for (t = 0; t <= 3600; t += 15)
      printf "hits_total{host=\"%s\"} %d %d\n", host == 1 ? "a" : "b", t * host, begin + t
  print "# TYPE heat gauge"
  for (t = 0; t <= 3600; t += 15) printf "heat{room=\"%s\"} %d %d\n", "kitchen", 20, begin + t
  print "# EOF"
}' > "$work/hits.om"
"$binary" import --data-dir "$work/data" "$work/hits.om" > /dev/null

mkfifo "$work/ready"
"$binary" up --data-dir "$work/data" --http 127.0.0.1:0 --workers 3 > "$work/ready" 2> "$work/log" &
cluster=$!
read -r -t 60 line < "$work/ready" || { cat "$work/log" >&2; fail "the cluster is not ready"; }
url=http://${line#ready http=}
# Whatever else it prints goes nowhere.
exec 7< "$work/ready"
end=$((begin + 3600))

same "promtool: an instant" \
  "$("$promtool" query instant --time=$end "$url" 'sum by (host) (irate(hits_total[5m]))')" \
  "{host=\"a\"} => 1 @[$end]
{host=\"b\"} => 2 @[$end]"
same "promtool: a range" \
  "$("$promtool" query range --start=$((end - 120)) --end=$end --step=60s "$url" 'sum(hits_total)')" \
  "{} =>
$((3 * 3480)) @[$((end - 120))]
$((3 * 3540)) @[$((end - 60))]
$((3 * 3600)) @[$end]"
same "promtool: series" \
  "$("$promtool" query series --start=$begin --end=$end --match='hits_total' "$url")" \
  '{__name__="hits_total", host="a"}
{__name__="hits_total", host="b"}'
same "promtool: labels" \
  "$("$promtool" query labels --start=$begin --end=$end "$url" host)" \
  'a
b'
if "$promtool" query instant "$url" 'sum(' 2> "$work/error"; then fail "half a query was answered"; fi
grep -q '1:5: parse error: unclosed left parenthesis' "$work/error" || fail "$(cat "$work/error")"
echo "ok  promtool: half a query"

"$here/../python/with-packages.sh" "$here/packages.txt" python "$here/client_check.py" "$url" $begin

if ! command -v node > /dev/null || ! command -v npm > /dev/null; then
  apt-get update -qq && apt-get install -y -qq nodejs npm > /dev/null
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tributary/node
mkdir -p "$cache"
cp "$here/package.json" "$cache/"
(cd "$cache" && npm install --silent --no-audit --no-fund > /dev/null)
NODE_PATH=$cache/node_modules node "$here/eventsource_check.js" "$url" $begin

# It keeps notes where it is started.
cd "$work"
"$here/../python/with-packages.sh" "$here/packages.txt" \
  st --config-file "$here/schemathesis.toml" run "$url/api/v1/openapi.json" \
  --max-examples "${TRIBUTARY_SCHEMATHESIS_EXAMPLES:-20}" \
  --checks not_a_server_error,response_schema_conformance,status_code_conformance \
  --request-timeout 20 --seed 7 --generation-deterministic > "$work/st.log" 2>&1 ||
  { tail -80 "$work/st.log" >&2; fail "schemathesis found something"; }
echo "ok  schemathesis: $(grep -oE '[0-9,]+ generated, [0-9,]+ (unique|passed)[^ ]*' "$work/st.log" | tail -1 || true)"

# After all that, the next query works, and leaving is polite.
same "the next query" \
  "$("$promtool" query instant --time=$end "$url" 'count(hits_total)')" "{} => 2 @[$end]"
kill "$cluster"
wait "$cluster" || fail "the cluster left with $?"
cluster=
echo "ok  the cluster leaves"
