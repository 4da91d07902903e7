# shellcheck shell=bash
# Functions for tests/run and .ci/run. To be sourced by bash.

say() { printf '\n==> %s\n' "$*"; }

die() {
    printf '\nerror: %s\n' "$*" >&2
    exit 1
}

# Runs a command as root, which installing needs: directly, or by sudo.
as_root() {
    if [[ $EUID == 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

# install_packages PACKAGE…: from the distribution. Says so, since it changes the machine.
install_packages() {
    command -v apt-get >/dev/null || return 1
    say "installing $* (Debian packages)"
    # The lists of a fresh machine are empty or old.
    as_root apt-get update -qq || return 1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

# need PROGRAM PACKAGE: installs a program that is missing.
need() {
    command -v "$1" >/dev/null || install_packages "$2" || true
    command -v "$1" >/dev/null || die "$1 is missing and cannot be installed here: install it (Debian: $2)"
}

# user_for PREFERRED FOLDER: the user to run a server as that refuses to run as root, and gives it the folder. Nothing
# where this is not root.
user_for() {
    [[ $EUID == 0 ]] || return 0
    local user=nobody
    ! id "$1" >/dev/null 2>&1 || user=$1
    chown -R "$user" "$2"
    echo "$user"
}

# run_as USER COMMAND…: as that user; as oneself where it is empty.
run_as() {
    local user=$1
    shift
    if [[ -n $user ]]; then
        (cd / && exec runuser -u "$user" -- "$@")
    else
        "$@"
    fi
}

# A port on 127.0.0.1 that nobody listens on. Somebody may take it before its server does: who starts one tries again.
free_port() {
    local port
    while true; do
        port=$((RANDOM % 20000 + 30000))
        (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null || break
    done
    echo "$port"
}
