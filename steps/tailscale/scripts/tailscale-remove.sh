# Uses: receipt put service daemon
# Deletes the job, the programs, the state and, last, the receipts, which mark them as macfleet's.
set -e
begin tailscale
leave "system/$label"
for path in /etc/resolver/*; do
  [ -f "$path" ] || continue
  IFS= read -r first <"$path" || :
  case $first in *'Added by tailscaled'*) rm -f "$path" ;; esac
done
rm -rf "$folder" "$former" "$former.new" /usr/local/lib/macfleet/.tailscale.new.*
rm -f "$list" "$bin/tailscale" "$bin/tailscaled" /var/log/tailscaled.log /var/run/tailscaled.socket /etc/macfleet/.tailscale-key.*
rm -f "$receipts/tailscale.job" "$receipts/tailscale_client.receipt" "$receipts/tailscale.receipt"
sync
