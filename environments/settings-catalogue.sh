#!/usr/bin/env bash
# Makes src/spec/check/settings.tsv: every server setting of every major that loadlab supports.
#
#   environments/settings-catalogue.sh BIN... > src/spec/check/settings.tsv
#
# BIN are the folders of initdb and postgres, one per major (14 to 18). Run it as an unprivileged user.
# Builds without lz4, zstd or io_uring know fewer values; those are added below, so that the catalogue does
# not depend on the build. Defaults that are paths are left out.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for bin in "$@"; do
    major=$("$bin/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
    "$bin/initdb" -D "$work/$major" -U postgres --locale=C --encoding=UTF8 --no-sync >/dev/null 2>&1
    # The single-user server takes one line of SQL and writes COPY to standard output.
    "$bin/postgres" --single -D "$work/$major" -c log_min_messages=fatal postgres >/dev/null <<SQL
COPY (SELECT name, vartype, context, coalesce(unit, ''), coalesce(min_val, ''), coalesce(max_val, ''), coalesce(array_to_string(enumvals, ','), ''), CASE WHEN boot_val ~ '/' THEN '' ELSE coalesce(boot_val, '') END, '$major' FROM pg_settings WHERE name !~ '[.]') TO '$work/$major.tsv'
SQL
done

cat "$work"/*.tsv | awk -F '\t' -v OFS='\t' '
    $1 == "default_toast_compression" { $7 = "pglz,lz4" }
    $1 == "wal_compression" && $2 == "enum" { $7 = "pglz,lz4,zstd,on,off" }
    $1 == "io_method" { $7 = "sync,worker,io_uring" }
    { print }
' | LC_ALL=C sort -t $'\t' -k1,1 -k9,9n | awk -F '\t' -v OFS='\t' '
    BEGIN { print "# name", "first major", "last major", "type", "context", "unit", "min", "max", "values", "default" }
    function flush() { if (name != "") print name, first, last, rest }
    {
        attributes = $2 OFS $3 OFS $4 OFS $5 OFS $6 OFS $7 OFS $8
        if ($1 == name && attributes == rest && $9 == last + 1) { last = $9; next }
        flush(); name = $1; rest = attributes; first = last = $9
    }
    END { flush() }
'
