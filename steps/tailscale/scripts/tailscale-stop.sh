# Uses: receipt put service daemon
# Stops the daemon for good. $1 "logout" to expire its node key first, where its device cannot be deleted otherwise.
set -e
begin tailscale
look "system/$label"
if [ "$1" = logout ] && [ "$code" = 0 ]; then
  client logout >/dev/null 2>&1 </dev/null || :
fi
leave "system/$label"
rm -f /etc/macfleet/.tailscale-key.*
sync
