# shellcheck shell=bash
# A private PgBouncer in transaction mode for the tests. To be sourced by bash, after common.sh.
#
#   pgbouncer_start URL   installs PgBouncer if it is missing, starts one in front of that server, exports
#                         TEST_POSTGRES_POOLER
#   pgbouncer_stop        stops it and removes its folder; safe to call at any time

PGBOUNCER_DIR=

pgbouncer_start() {
    local server=$1 host port user
    # Debian keeps it off the PATH of ordinary users.
    local PATH=$PATH:/usr/sbin
    need pgbouncer pgbouncer
    # postgres://user@host:port/database
    user=${server#*//} user=${user%%@*}
    host=${server#*@} host=${host%%/*}
    port=${host##*:} host=${host%:*}

    PGBOUNCER_DIR=$(mktemp -d "${TMPDIR:-/tmp}/outbox-pgbouncer.XXXXXX")
    local listen try runner
    echo "\"$user\" \"\"" >"$PGBOUNCER_DIR/users"
    for try in 1 2 3 4 5; do
        listen=$(free_port)
        cat >"$PGBOUNCER_DIR/pgbouncer.ini" <<INI
[databases]
* = host=$host port=$port user=$user
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $listen
unix_socket_dir =
auth_type = any
auth_file = $PGBOUNCER_DIR/users
pool_mode = transaction
default_pool_size = 12
max_client_conn = 1000
logfile = $PGBOUNCER_DIR/log
pidfile = $PGBOUNCER_DIR/pid
INI
        runner=$(user_for nobody "$PGBOUNCER_DIR")
        if run_as "$runner" "$(command -v pgbouncer)" --daemon --quiet "$PGBOUNCER_DIR/pgbouncer.ini"; then
            export TEST_POSTGRES_POOLER="postgres://$user@127.0.0.1:$listen/postgres"
            say "PgBouncer in transaction mode at $TEST_POSTGRES_POOLER"
            return
        fi
        echo "PgBouncer did not start on port $listen (try $try of 5)" >&2
    done
    cat "$PGBOUNCER_DIR/log" >&2
    die "PgBouncer does not start"
}

pgbouncer_stop() {
    [[ -n $PGBOUNCER_DIR ]] || return 0
    [[ ! -f $PGBOUNCER_DIR/pid ]] || kill -INT "$(cat "$PGBOUNCER_DIR/pid")" 2>/dev/null || true
    rm -rf "$PGBOUNCER_DIR"
    PGBOUNCER_DIR=
}
