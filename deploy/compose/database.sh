#!/usr/bin/env bash
# Makes jurat's role and its database. The image of PostgreSQL runs it once, when its volume is empty.
set -euo pipefail
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\set password `cut -d: -f5 "${JURAT_PGPASS:-/run/secrets/pgpass}"`
CREATE ROLE jurat LOGIN PASSWORD :'password';
CREATE DATABASE jurat OWNER jurat ENCODING 'UTF8' TEMPLATE template0;
REVOKE CONNECT, TEMPORARY ON DATABASE jurat FROM PUBLIC;
SQL
