#!/bin/bash
# Builds loadlab/postgres:MAJOR from Debian packages, without any container registry.
# usage: build.sh MAJOR
#   LOADLAB_DEBIAN_MIRROR  Debian mirror; default: the host's own, else the base image's
#   LOADLAB_NO_PULL=1      never ask a registry for the base image
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

die() { echo "build.sh: $*" >&2; exit 1; }

[ $# = 1 ] || die "usage: build.sh MAJOR, for example build.sh 15"
major=$1
# Each Debian release carries one major.
case $major in
  15) suite=bookworm ;;
  17) suite=trixie ;;
  14 | 16 | 18)
    die "PostgreSQL $major is in no Debian release (bookworm has 15, trixie has 17)." \
      "Use the official image (docker pull postgres:$major) or a local server (loadlab env install $major)" ;;
  *) die "$major is not a PostgreSQL major that loadlab supports (14 to 18)" ;;
esac
base=loadlab/debian:$suite
image=loadlab/postgres:$major
docker version --format '{{.Server.Version}}' > /dev/null || die "no container engine answers; start it, or run .ci/docker-engine"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# first_mirror: the first Debian mirror in apt sources on standard input, both formats.
first_mirror() {
  sed -nE -e 's/^URIs: *([^ ]+).*/\1/p' -e 's/^deb +(\[[^]]*\] +)?([^ ]+).*/\2/p' | grep -E '/debian/?$' | head -n 1 || true
}
apt_sources='cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2> /dev/null || true'

mirror=${LOADLAB_DEBIAN_MIRROR:-}
if [ -z "$mirror" ] && [ -r /etc/debian_version ]; then
  mirror=$(sh -c "$apt_sources" | first_mirror)
fi

pull_base() {
  [ -z "${LOADLAB_NO_PULL:-}" ] || return 1
  echo "pulling debian:$suite-slim as the base"
  timeout 120 docker pull -q "debian:$suite-slim" > /dev/null 2> "$work/pull.log" || {
    echo "it cannot be pulled: $(tail -n 1 "$work/pull.log")"
    return 1
  }
  docker tag "debian:$suite-slim" "$base"
}

debootstrap_base() {
  command -v debootstrap > /dev/null || die "debootstrap is missing and the base cannot be pulled; apt-get install debootstrap"
  [ "$(id -u)" = 0 ] || die "debootstrap needs root; run as root, or load debian:$suite-slim into the engine yourself"
  [ -n "$mirror" ] || die "no Debian mirror is known here: name one in LOADLAB_DEBIAN_MIRROR"
  echo "making $base with debootstrap from $mirror"
  debootstrap --variant=minbase "$suite" "$work/root" "$mirror" > "$work/debootstrap.log" 2>&1 || {
    tail -n 20 "$work/debootstrap.log" >&2
    die "debootstrap failed"
  }
  rm -rf "$work/root"/var/cache/apt/* "$work/root"/var/lib/apt/lists/* "$work/root"/var/log/* \
    "$work/root"/usr/share/{doc,man,info,locale}/*
  tar -C "$work/root" --numeric-owner -c . | docker import --change 'CMD ["bash"]' - "$base" > /dev/null
  rm -rf "$work/root"
}

# What apt needs on this host to reach its mirror: proxies and relaxed checks of the host's own settings.
host_apt() {
  # A host that is not Debian has no mirror of its own; the base that was pulled has.
  [ -n "$mirror" ] || mirror=$(docker run --rm "$base" sh -c "$apt_sources" | first_mirror)
  mkdir -p "$work/context/build/apt"
  : > "$work/context/build/apt/99host.conf"
  if command -v apt-config > /dev/null; then
    apt-config dump | grep -E '^Acquire::([A-Za-z]+::)?(Proxy|Check-Valid-Until|Check-Date)' \
      >> "$work/context/build/apt/99host.conf" || true
  fi
  {
    echo "deb $mirror $suite main"
    echo "deb $mirror $suite-updates main"
    # A mirror named .../debian has the security archive beside it, as Debian's own does.
    case $mirror in
      */debian | */debian/) echo "deb ${mirror%/debian*}/debian-security $suite-security main" ;;
    esac
  } > "$work/context/build/apt/sources.list"
}

docker image inspect "$base" > /dev/null 2>&1 || pull_base || debootstrap_base
mkdir -p "$work/context/build"
host_apt
cp "$here/Dockerfile" "$here/entrypoint.sh" "$work/context/"
cp "$here/install.sh" "$work/context/build/"
arguments=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || arguments+=(--build-arg "$name")
done
# The host's network: its proxies and name servers are often reachable from there only.
DOCKER_BUILDKIT=${DOCKER_BUILDKIT:-0} docker build --network host --quiet --build-arg BASE="$base" --build-arg MAJOR="$major" \
  "${arguments[@]}" --tag "$image" "$work/context" > "$work/build.log" 2>&1 || {
  tail -n 40 "$work/build.log" >&2
  die "the build of $image failed"
}
docker image inspect --format "$image {{.Id}} {{.Size}} bytes" "$image"
