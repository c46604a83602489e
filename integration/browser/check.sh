#!/usr/bin/env bash
# The web page in a real browser: a query is typed and run, its values are read in the legend, an error
# is shown at its place, a query is cancelled, and the tables and the waterfall say what happened.
#
#   integration/browser/check.sh BINARY [FOLDER]
#
# Imports samples with BINARY, serves them with an API node and three workers and with one that has none and wants a key,
# and drives Chromium without a screen. Screenshots go to FOLDER where one is named. Chromium and Node are installed where
# they are missing, which takes Debian's apt-get and root; playwright-core is installed once, under
# ~/.cache/tributary, which takes npm's registry.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:?which binary?}")
shots=${2:-}

work=$(mktemp -d)
servers=()
finish() {
  for server in "${servers[@]}"; do kill "$server" 2>/dev/null && wait "$server" || true; done
  rm -rf "$work"
}
trap finish EXIT
fail() { printf 'page: %s\n' "$*" >&2; exit 1; }

missing=()
command -v chromium > /dev/null || missing+=(chromium)
command -v node > /dev/null || missing+=(nodejs)
command -v npm > /dev/null || missing+=(npm)
if [ ${#missing[@]} -gt 0 ]; then apt-get update -qq && apt-get install -y -qq "${missing[@]}" > /dev/null; fi
packages=${XDG_CACHE_HOME:-$HOME/.cache}/tributary/node/browser
if ! cmp -s "$here/package.json" "$packages/package.json" || [ ! -d "$packages/node_modules" ]; then
  mkdir -p "$packages"
  cp "$here/package.json" "$packages/"
  (cd "$packages" && npm install --silent --no-audit --no-fund > /dev/null)
fi

# Six hours from a fixed time on: counters of five services that rise at 1 to 5 a second, and gauges
# that go up and down.
begin=1700000000
awk -v begin=$begin 'BEGIN {
  split("cart checkout login search web", job, " ")
  print "# TYPE requests counter"
  for (j = 1; j <= 5; j++)
    for (i = 1; i <= 3; i++)
      for (t = 0; t <= 21600; t += 15)
        printf "requests_total{job=\"%s\",instance=\"%s-%d\"} %d %d\n", job[j], job[j], i, t * j, begin + t
  print "# TYPE load gauge"
  for (j = 1; j <= 5; j++)
    for (t = 0; t <= 21600; t += 15)
      printf "load{job=\"%s\"} %.4f %d\n", job[j], 40 + 9 * j + 22 * sin(t / (900 + 260 * j)) + 5 * sin(t / 130 + j), begin + t
  print "# EOF"
}' > "$work/samples.om"
"$binary" import --data-dir "$work/data" "$work/samples.om" > /dev/null

serve() { # name, arguments
  local name=$1; shift
  mkfifo "$work/$name"
  "$binary" "$@" --data-dir "$work/data" --http 127.0.0.1:0 > "$work/$name" 2> "$work/$name.log" &
  servers+=($!)
  read -r -t 60 line < "$work/$name" || { cat "$work/$name.log" >&2; fail "$name is not ready"; }
  url=http://${line#ready http=}
}
serve cluster up --workers 3
cluster=$url
exec 7< "$work/cluster"
key=trib_$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
printf '{"tenant":"default","name":"page","sha256":"%s"}\n' "$(printf %s "$key" | sha256sum | cut -d' ' -f1)" > "$work/keys"
printf '[access]\nkeys = "%s"\n' "$work/keys" > "$work/lonely.toml"
serve lonely api --config "$work/lonely.toml"
lonely=$url
exec 8< "$work/lonely"

NODE_PATH=$packages/node_modules node "$here/page_check.js" "$cluster" "$lonely" "$key" $begin "$(command -v chromium)" "$shots"
for server in "${servers[@]}"; do
  kill "$server"
  wait "$server" || fail "a server left with $?"
done
servers=()
