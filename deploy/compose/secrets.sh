#!/usr/bin/env bash
# Makes the folder secrets, which sqlite.yaml and postgres.yaml read, with a certificate that you bring:
#
#   sudo bash secrets.sh CERTIFICATE.pem KEY.pem
#
# Compose mounts each file as it is, so each belongs to the user who reads it in a container: 65532 is jurat (and nginx here), 999 is PostgreSQL.
# It needs root, openssl, and jurat, of this archive or in PATH. It never overwrites anything.
set -euo pipefail
cd "$(dirname "$0")"
certificate=${1:?'secrets.sh CERTIFICATE.pem KEY.pem'}
key=${2:?'secrets.sh CERTIFICATE.pem KEY.pem'}
jurat=../../jurat
[ -x "$jurat" ] && [ ! -d "$jurat" ] || jurat=jurat

fail() {
	printf 'secrets.sh: %s\n' "$*" >&2
	exit 1
}
[ "$(id -u)" = 0 ] || fail 'only root can give files to the users of containers: sudo bash secrets.sh CERTIFICATE.pem KEY.pem'
[ ! -e secrets ] || fail 'the folder secrets is there already: move it away, or change single files in it'
[ "$(openssl x509 -in "$certificate" -noout -pubkey)" = "$(openssl pkey -in "$key" -pubout)" ] || fail "$key is not the key of $certificate"

umask 077
part=$(mktemp -d ./secrets-XXXXXX) # so that the folder appears whole or not at all
trap 'rm -rf "$part"' EXIT
cp "$certificate" "$part/tls.crt"
cp "$key" "$part/tls.key"
"$jurat" keys rewrap --new "$part/wrapping.key"
printf '*:*:*:jurat:%s\n' "$(openssl rand -hex 32)" >"$part/pgpass"
openssl rand -hex 32 >"$part/postgres.password"
printf '# The keys of models, such as OPENAI_API_KEY=…, one a line. Without any, the jurors are rules.\n' >"$part/models.env"
chown 65532:65532 "$part"/{tls.crt,tls.key,wrapping.key}
chown 65532:999 "$part/pgpass"
chown 999:999 "$part/postgres.password"
chmod 400 "$part"/*
chmod 440 "$part/pgpass" # both the nodes and the database's first start read it
chmod 600 "$part/models.env"
mv "$part" secrets
trap - EXIT
