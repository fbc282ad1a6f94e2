#!/bin/bash
# Entry point with the interface of the official "postgres" image: the first start makes the cluster from
# the POSTGRES_* variables, later starts only run the server. Options given as the command go to the server.
set -euo pipefail

say() { echo "loadlab entrypoint: $*" >&2; }
die() { say "$*"; exit 1; }

# take NAME [DEFAULT]: NAME from its variable, or from the file that NAME_FILE names; both is an error.
take() {
  local name=$1 file_name=$1_FILE value=${2:-}
  if [ -n "${!name:-}" ] && [ -n "${!file_name:-}" ]; then
    die "$name and $file_name are both set; set one of them"
  elif [ -n "${!name:-}" ]; then
    value=${!name}
  elif [ -n "${!file_name:-}" ]; then
    [ -r "${!file_name}" ] || die "$file_name: cannot read ${!file_name}"
    value=$(< "${!file_name}")
  fi
  export "$name=$value"
  unset "$file_name"
}

read_settings() {
  take POSTGRES_PASSWORD
  take POSTGRES_USER postgres
  take POSTGRES_DB "$POSTGRES_USER"
  take POSTGRES_INITDB_ARGS
  : "${POSTGRES_HOST_AUTH_METHOD:=}"
}

make_directories() {
  mkdir -p "$PGDATA"
  chmod 00700 "$PGDATA" || true
  mkdir -p /var/run/postgresql
  chmod 03775 /var/run/postgresql || true
  if [ -n "${POSTGRES_INITDB_WALDIR:-}" ]; then
    mkdir -p "$POSTGRES_INITDB_WALDIR"
    chmod 700 "$POSTGRES_INITDB_WALDIR"
  fi
  if [ "$(id -u)" = 0 ]; then
    find "$PGDATA" /var/run/postgresql ! -user postgres -exec chown postgres:postgres '{}' +
    if [ -n "${POSTGRES_INITDB_WALDIR:-}" ]; then
      find "$POSTGRES_INITDB_WALDIR" ! -user postgres -exec chown postgres:postgres '{}' +
    fi
  fi
}

demand_password() {
  if [ -z "$POSTGRES_PASSWORD" ] && [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
    die "no superuser password: set POSTGRES_PASSWORD (or POSTGRES_PASSWORD_FILE)." \
      "POSTGRES_HOST_AUTH_METHOD=trust lets everybody in without one; do that only where nobody else can connect"
  fi
  if [ "$POSTGRES_HOST_AUTH_METHOD" = trust ]; then
    say "warning: POSTGRES_HOST_AUTH_METHOD=trust, everybody who reaches the port is let in"
  fi
}

make_cluster() {
  local arguments=(--username="$POSTGRES_USER" -D "$PGDATA")
  [ -z "${POSTGRES_INITDB_WALDIR:-}" ] || arguments+=(--waldir="$POSTGRES_INITDB_WALDIR")
  # POSTGRES_INITDB_ARGS may quote, as a shell line does.
  eval "initdb --pwfile=<(printf '%s\n' \"\$POSTGRES_PASSWORD\") \"\${arguments[@]}\" $POSTGRES_INITDB_ARGS"
  local method=$POSTGRES_HOST_AUTH_METHOD
  [ -n "$method" ] || method=$(postgres -C password_encryption)
  printf '\nhost all all all %s\n' "$method" >> "$PGDATA/pg_hba.conf"
}

query() {
  PGHOST='' PGHOSTADDR='' PGPASSWORD="$POSTGRES_PASSWORD" \
    psql -v ON_ERROR_STOP=1 --no-psqlrc --no-password --username "$POSTGRES_USER" "$@"
}

# The temporary server listens on the socket only: nobody outside meets a half-made database.
with_temporary_server() {
  [ "${1:-}" != postgres ] || shift
  local options
  options=$(printf '%q ' "$@" -c listen_addresses= -p "${PGPORT:-5432}")
  PGUSER=$POSTGRES_USER pg_ctl -D "$PGDATA" -o "$options" -w -t 600 start
  if [ "$POSTGRES_DB" != postgres ]; then
    query --dbname postgres --set db="$POSTGRES_DB" <<< 'CREATE DATABASE :"db";'
  fi
  run_init_files /docker-entrypoint-initdb.d/*
  PGUSER=$POSTGRES_USER pg_ctl -D "$PGDATA" -m fast -w -t 600 stop
}

run_init_files() {
  local file
  for file; do
    case $file in
      *.sh)
        if [ -x "$file" ]; then say "running $file"; "$file"; else say "sourcing $file"; . "$file"; fi ;;
      *.sql) say "running $file"; query --dbname "$POSTGRES_DB" -f "$file" ;;
      *.sql.gz) say "running $file"; gunzip -c "$file" | query --dbname "$POSTGRES_DB" ;;
      */\*) ;;
      *) say "ignoring $file" ;;
    esac
  done
}

wants_help_only() {
  local argument
  for argument; do
    case $argument in -\?|--help|--describe-config|-V|--version) return 0 ;; esac
  done
  return 1
}

[ "${1:0:1}" != - ] || set -- postgres "$@"
if [ "${1:-}" = postgres ] && ! wants_help_only "$@"; then
  read_settings
  make_directories
  if [ "$(id -u)" = 0 ]; then
    exec setpriv --reuid postgres --regid postgres --init-groups "$BASH_SOURCE" "$@"
  fi
  if [ -s "$PGDATA/PG_VERSION" ]; then
    say "$PGDATA holds a cluster already, not initialising"
  else
    demand_password
    make_cluster
    with_temporary_server "$@"
    say "the cluster is made, starting the server"
  fi
  unset POSTGRES_PASSWORD
fi
exec "$@"
