#!/usr/bin/env bash
# Runs a command with a PostgreSQL of its own, and stops it again:
#
#   catalog/tests/with-postgres.sh cargo test -p tributary-catalog
#
# Debian's postgresql is installed if there is none. The server listens on a unix socket in a
# temporary folder and nowhere else, runs without privileges, and keeps nothing. The command finds:
#
#   TRIBUTARY_TEST_POSTGRES            the URL of a server for everybody
#   TRIBUTARY_TEST_POSTGRES_SPARE      the URL of a second one, which a test may stop
#   TRIBUTARY_TEST_POSTGRES_SPARE_CTL  a program that does it: start, stop, freeze, thaw
set -euo pipefail

[ $# -gt 0 ] || { sed -n '2,/^set/{/^#/p}' "$0" >&2; exit 2; }

say() { printf '%s\n' "with-postgres: $*" >&2; }

newest_bin() {
  local dir newest=
  for dir in /usr/lib/postgresql/*/bin; do
    [ -x "$dir/initdb" ] && newest=$(printf '%s\n' "$newest" "$dir" | sort -V | tail -1)
  done
  [ -n "$newest" ] && { echo "$newest"; return; }
  command -v initdb >/dev/null && dirname "$(readlink -f "$(command -v initdb)")"
}

if ! bin=$(newest_bin); then
  say "installing Debian's postgresql"
  # The package would create and start a server of the system's own; nobody here needs it.
  if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2
  apt-get install -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold postgresql >&2
  bin=$(newest_bin) || { say "still no postgresql after installing it"; exit 1; }
fi

# PostgreSQL refuses to run as root.
as_server=()
if [ "$(id -u)" = 0 ]; then
  id postgres >/dev/null 2>&1 && user=postgres || user=nobody
  as_server=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups env HOME=/)
fi

# A socket's path may have some hundred bytes: a short folder, whatever TMPDIR is.
home=$(mktemp -d /tmp/pg-XXXXXX)
chmod 711 "$home"
for name in main spare; do
  mkdir "$home/$name"
  [ "$(id -u)" = 0 ] && chown "$user" "$home/$name"
  cat > "$home/$name-ctl" <<CTL
#!/usr/bin/env bash
set -euo pipefail
cd /
as_server=(${as_server[*]@Q})
data=$home/$name/data
# The server and every process it has made.
all() { local top; top=\$(head -1 "\$data/postmaster.pid"); echo "\$top"; ps -o pid= --ppid "\$top" || true; }
case \$1 in
  start)
    "\${as_server[@]}" $bin/pg_ctl -D "\$data" -l $home/$name/log -w -t 60 start >/dev/null </dev/null ;;
  stop)
    kill -CONT \$(all) 2>/dev/null || true
    "\${as_server[@]}" $bin/pg_ctl -D "\$data" -m immediate -w -t 60 stop >/dev/null ;;
  freeze) kill -STOP \$(all) ;;
  thaw) kill -CONT \$(all) ;;
esac
CTL
  chmod +x "$home/$name-ctl"
done

finish() {
  for name in main spare; do
    if [ -e "$home/$name/data/postmaster.pid" ]; then "$home/$name-ctl" stop || true; fi
  done
  rm -rf "$home"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

cd_back=$PWD
cd /
"${as_server[@]}" "$bin/initdb" -D "$home/main/data" -U tributary -A trust -E UTF8 --locale C --no-sync \
  > "$home/main/initdb.log" 2>&1 || { cat "$home/main/initdb.log" >&2; exit 1; }
"${as_server[@]}" cp -a "$home/main/data" "$home/spare/data"
for name in main spare; do
  "${as_server[@]}" tee -a "$home/$name/data/postgresql.conf" >/dev/null <<CONF
listen_addresses = ''
unix_socket_directories = '$home/$name'
unix_socket_permissions = 0700
max_connections = 200
fsync = off
CONF
  "$home/$name-ctl" start || { cat "$home/$name/log" >&2; exit 1; }
done
cd "$cd_back"

export TRIBUTARY_TEST_POSTGRES="postgres://tributary@localhost/postgres?host=$home/main"
export TRIBUTARY_TEST_POSTGRES_SPARE="postgres://tributary@localhost/postgres?host=$home/spare"
export TRIBUTARY_TEST_POSTGRES_SPARE_CTL=$home/spare-ctl
say "$("$bin/postgres" --version) on $home"
"$@"
