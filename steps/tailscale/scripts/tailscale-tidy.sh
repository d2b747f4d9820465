# Uses: put daemon forget
# Deletes what killed programs left: files with keys, the files from before a roll, and a tailscaled's files in /etc/resolver. A daemon
# that runs with accept-dns would have its own there; macfleet's never does.
set -e
begin tailscale
rm -f /etc/macfleet/.tailscale-key.*
forget_former
rm -rf /usr/local/lib/macfleet/.tailscale.new.*
for path in /etc/resolver/*; do
  [ -f "$path" ] || continue
  IFS= read -r first <"$path" || :
  case $first in *'Added by tailscaled'*) rm -f "$path" ;; esac
done
sync
