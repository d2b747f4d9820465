# Uses: receipt put service job
# Updates the wrapper and the job, and restarts the exporter.
# $1 the login user, $2 the property list, $3 the wrapper, $4 how to restart it: "load", "kick" or "ask", $5 the port, $6… the flags.
set -e
user=$1 wanted=$2 wrapper=$3 how=$4 port=$5
shift 5
label=dev.macfleet.node-exporter
log=/var/log/node_exporter.log
begin node_exporter
if ! /bin/sh -c 'exec /usr/local/bin/node_exporter "$@"' sh "$@" --version >/dev/null; then
  echo "node_exporter does not have one of the configured collectors; nothing was changed" >&2
  exit 1
fi
put "$receipts/node_exporter-run" "$wrapper" 0755
[ -e "$log" ] || : >"$log"
chown "$user:staff" "$log"
start node_exporter "$label" "$receipts/node_exporter-run" "$wanted" "$how"
if ! stays node_exporter "$receipts/node_exporter-run" "$wanted"; then
  tail -n 20 "$log" >&2 || :
  echo "node_exporter does not stay up on port $port (log: $log)" >&2
  exit 70
fi
sync
