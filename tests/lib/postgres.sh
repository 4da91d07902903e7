# shellcheck shell=bash
# A private PostgreSQL server for the tests. To be sourced by bash, after common.sh.
#
#   postgres_start   installs PostgreSQL if it is missing, starts a server with POSTGRES_OPTIONS, exports
#                    TEST_POSTGRES_URL
#   postgres_stop    stops it and removes its folder; safe to call at any time

POSTGRES_DIR=
POSTGRES_USER=
POSTGRES_BIN=

# Debian keeps the server's programs off the PATH, in a folder for each version.
postgres_find() {
    local pg_ctl
    pg_ctl=$(compgen -G '/usr/lib/postgresql/*/bin/pg_ctl' | sort -V | tail -n 1) || true
    [[ -n $pg_ctl ]] || pg_ctl=$(command -v pg_ctl) || return 1
    POSTGRES_BIN=$(dirname "$(readlink -f "$pg_ctl")")
    [[ -x $POSTGRES_BIN/initdb && -x $POSTGRES_BIN/postgres ]]
}

postgres_start() {
    postgres_find || install_packages postgresql || true
    postgres_find || die "PostgreSQL is missing and cannot be installed here: install it, or set TEST_POSTGRES_URL"

    POSTGRES_DIR=$(mktemp -d "${TMPDIR:-/tmp}/outbox-postgres.XXXXXX")
    POSTGRES_USER=$(user_for postgres "$POSTGRES_DIR")
    # Durable as in production, so that crash tests mean something; the tests' own data is small.
    run_as "$POSTGRES_USER" "$POSTGRES_BIN/initdb" --pgdata="$POSTGRES_DIR/data" --username=postgres --auth=trust \
        --encoding=UTF8 --no-locale >"$POSTGRES_DIR/initdb.log" 2>&1 ||
        die "initdb failed: $(cat "$POSTGRES_DIR/initdb.log")"

    local port options try preload=
    # With it the tests count statements.
    [[ -e $(dirname "$POSTGRES_BIN")/lib/pg_stat_statements.so ]] && preload=pg_stat_statements
    for try in 1 2 3 4 5; do
        port=$(free_port)
        options="-c listen_addresses=127.0.0.1 -c port=$port -c unix_socket_directories='' -c max_connections=300"
        options+=" -c shared_preload_libraries='$preload' ${POSTGRES_OPTIONS:-}"
        if run_as "$POSTGRES_USER" "$POSTGRES_BIN/pg_ctl" start --wait --silent --pgdata="$POSTGRES_DIR/data" \
            --log="$POSTGRES_DIR/data/server.log" --options="$options"; then
            export TEST_POSTGRES_URL="postgres://postgres@127.0.0.1:$port/postgres"
            say "PostgreSQL $("$POSTGRES_BIN/postgres" --version | grep -oE '[0-9.]+' | head -n 1) at $TEST_POSTGRES_URL"
            return
        fi
        echo "PostgreSQL did not start on port $port (try $try of 5)" >&2
    done
    cat "$POSTGRES_DIR/data/server.log" >&2
    die "PostgreSQL does not start"
}

postgres_stop() {
    [[ -n $POSTGRES_DIR ]] || return 0
    if [[ -f $POSTGRES_DIR/data/postmaster.pid ]]; then
        run_as "$POSTGRES_USER" "$POSTGRES_BIN/pg_ctl" stop --wait --silent --mode=immediate --pgdata="$POSTGRES_DIR/data" || true
    fi
    rm -rf "$POSTGRES_DIR"
    POSTGRES_DIR=
}
