#!/bin/sh
# Runs inside the image build: installs one PostgreSQL major and removes what a server does not need.
set -eu
major=$1
export DEBIAN_FRONTEND=noninteractive

# The host's apt settings (proxy, mirror) are there during the build only.
cp -a /etc/apt /tmp/apt.saved
cp /tmp/build/apt/99host.conf /etc/apt/apt.conf.d/99host.conf
if [ -s /tmp/build/apt/sources.list ]; then
  rm -f /etc/apt/sources.list.d/*
  cp /tmp/build/apt/sources.list /etc/apt/sources.list
fi

# Documentation is not unpacked at all.
cat > /etc/dpkg/dpkg.cfg.d/slim <<'CFG'
path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-include=/usr/share/doc/*/copyright
CFG

# The official image's user and group number, so that bind-mounted folders can be exchanged between both.
groupadd --system --gid 999 postgres
useradd --system --uid 999 --gid postgres --home-dir /var/lib/postgresql --shell /bin/bash postgres

# The package must not make a cluster of its own.
mkdir -p /etc/postgresql-common/createcluster.d
echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.d/none.conf

apt-get update -qq
apt-get install -y -qq --no-install-recommends "postgresql-$major"

# Just-in-time compilation needs LLVM, which is two thirds of the installation. Without its library the
# server reports pg_jit_available() = false and plans as if jit were off.
for package in $(dpkg-query -W -f '${Package}\n' 'libllvm*' 'libz3-*' 2>/dev/null || true); do
  dpkg --purge --force-depends "$package"
done
rm -rf "/usr/lib/postgresql/$major/lib/bitcode" "/usr/lib/postgresql/$major/lib/"llvmjit*

# As in the official image: listen on every address of the container.
sed -i "s/^#\{0,1\}listen_addresses *=.*/listen_addresses = '*'/" "/usr/share/postgresql/$major/postgresql.conf.sample"
grep -q "^listen_addresses = '\*'" "/usr/share/postgresql/$major/postgresql.conf.sample"

rm -rf /var/lib/postgresql/* /var/run/postgresql
install -d -o postgres -g postgres -m 1777 /var/lib/postgresql/data
install -d -o postgres -g postgres -m 3777 /var/run/postgresql
mkdir /docker-entrypoint-initdb.d
chmod 755 /usr/local/bin/docker-entrypoint.sh

rm -rf /etc/apt && mv /tmp/apt.saved /etc/apt
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log /tmp/build
