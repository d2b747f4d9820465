# Uses: work tart
# Removes the bundle, the wrapper and, last, the receipt, which marks them as macfleet's. $1 "force" to ignore running
# work.
set -e
busy=$(work)
if [ -n "$busy" ] && [ "$1" != force ]; then
  printf '%s\n' "$busy" >&2
  echo "tart is in use: work started after the plan was made" >&2
  exit 75
fi
mkdir -p /etc/macfleet/pending
: >/etc/macfleet/pending/tart
rm -f /usr/local/bin/tart
rm -rf "$bundle" || protected remove
sweep
rm -f /usr/local/lib/macfleet/tart.bundle /usr/local/lib/macfleet/tart.receipt
sync
