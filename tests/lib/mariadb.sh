# shellcheck shell=bash
# A private MariaDB server for the tests. To be sourced by bash, after common.sh.
#
#   mariadb_start [OPTION…]   installs MariaDB if it is missing, starts a server with these options, exports TEST_MYSQL_URL
#   mariadb_stop              stops it and removes its folder; safe to call at any time

MARIADB_DIR=
MARIADB_USER=

mariadb_start() {
    # Debian keeps the server off the PATH of ordinary users.
    local PATH=$PATH:/usr/sbin
    need mariadbd mariadb-server
    need mariadb mariadb-client

    MARIADB_DIR=$(mktemp -d "${TMPDIR:-/tmp}/outbox-mariadb.XXXXXX")
    # A server that starts throws away what it takes for leftovers in its folder for temporary tables: not in /tmp, where
    # those of another may be.
    mkdir "$MARIADB_DIR/tmp"
    MARIADB_USER=$(user_for mysql "$MARIADB_DIR")
    run_as "$MARIADB_USER" mariadb-install-db --no-defaults --datadir="$MARIADB_DIR/data" --tmpdir="$MARIADB_DIR/tmp" \
        --skip-test-db \
        --auth-root-authentication-method=normal >"$MARIADB_DIR/install.log" 2>&1 ||
        die "mariadb-install-db failed: $(cat "$MARIADB_DIR/install.log")"

    local port try
    for try in 1 2 3 4 5; do
        port=$(free_port)
        # Its time zone is nobody's, so that whoever counts on UTC is found out.
        run_as "$MARIADB_USER" mariadbd --no-defaults --datadir="$MARIADB_DIR/data" --socket="$MARIADB_DIR/socket" \
            --pid-file="$MARIADB_DIR/pid" --bind-address=127.0.0.1 --port="$port" --max-connections=500 \
            --tmpdir="$MARIADB_DIR/tmp" --default-time-zone=+05:45 "$@" \
            >"$MARIADB_DIR/server.log" 2>&1 &
        if mariadb_answers; then
            export TEST_MYSQL_URL="mysql://root@127.0.0.1:$port"
            say "MariaDB $(mariadbd --version | grep -oE '[0-9]+[.][0-9.]+' | head -n 1) at $TEST_MYSQL_URL"
            return
        fi
        echo "MariaDB did not start on port $port (try $try of 5)" >&2
    done
    cat "$MARIADB_DIR/server.log" >&2
    die "MariaDB does not start"
}

# Waits for the server, as long as its process lives.
mariadb_answers() {
    local server=$! try
    for ((try = 0; try < 300; try++)); do
        mariadb --no-defaults --socket="$MARIADB_DIR/socket" --user=root --execute="SELECT 1" >/dev/null 2>&1 && return
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}

mariadb_stop() {
    [[ -n $MARIADB_DIR ]] || return 0
    local pid
    if pid=$(cat "$MARIADB_DIR/pid" 2>/dev/null) && kill "$pid" 2>/dev/null; then
        while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    fi
    rm -rf "$MARIADB_DIR"
    MARIADB_DIR=
}
