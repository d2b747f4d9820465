label=com.tailscale.tailscaled
list=/Library/LaunchDaemons/$label.plist
bin=/usr/local/bin
folder=/Library/Tailscale
former=/usr/local/lib/macfleet/tailscale.before

# client runs tailscale with the given arguments.
client() { /bin/sh -c 'exec /usr/local/bin/tailscale "$@"' sh "$@"; }

# backend sets status to what the daemon says, and succeeds if it is Running.
backend() {
  status=$(client status --json --peers=false 2>/dev/null </dev/null) || status=''
  case $status in *'"BackendState": "Running"'*) return 0 ;; esac
  return 1
}

# steady waits up to $1 seconds while the daemon is between two states. It may stay there: without its control server, for example.
steady() {
  tries=0
  while [ "$tries" -lt "$1" ]; do
    if backend; then return; fi
    case $status in *'"BackendState": "Starting"'* | *'"BackendState": "NoState"'*) ;; *) return ;; esac
    tries=$((tries + 1))
    sleep 1
  done
}

# answers waits until the daemon answers, for at most $1 seconds. The status exits with 0 also when it is logged out.
answers() {
  tries=0
  until client status --json --peers=false >/dev/null 2>&1 </dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt "$1" ] || return 1
    sleep 1
  done
}
