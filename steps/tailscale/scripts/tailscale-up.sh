# Uses: put daemon
# Ends tailscale down: the daemon has its node key and connects again.
set -e
begin tailscale
client up --timeout=60s </dev/null
sync
