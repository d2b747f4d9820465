# Uses: put daemon
# Sets the settings. $1 the host's name.
set -e
begin tailscale
client set --accept-dns=false --accept-routes=false --ssh=false "--hostname=$1" </dev/null
sync
