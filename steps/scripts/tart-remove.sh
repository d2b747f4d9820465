# Uses: work tart
# Takes away the bundle, the wrapper and last the receipt, which says that they are macfleet's.
# $1 is "force" where it does not wait for work to end.
set -e
busy=$(work)
if [ -n "$busy" ] && [ "$1" != force ]; then
  printf '%s\n' "$busy" >&2
  echo "tart is not removed while it is in use; it has begun since macfleet looked" >&2
  exit 75
fi
mkdir -p /etc/macfleet/pending
: >/etc/macfleet/pending/tart
rm -f /usr/local/bin/tart
rm -rf "$bundle" || protected remove
sweep
rm -f /usr/local/lib/macfleet/tart.bundle /usr/local/lib/macfleet/tart.receipt
sync
