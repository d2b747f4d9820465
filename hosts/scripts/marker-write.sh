# $1 is the marker. $2 is a step that it verifies, so nothing of it is pending any more. $3 is
# the marker that the writer read: replacing another one would lose a hold that someone set
# in the meantime.
set -e
if [ -n "$3" ] && [ -e /etc/macfleet/host.json ] && [ "$(cat /etc/macfleet/host.json)" != "$3" ]; then
  echo "the marker changed after it was read" >&2
  exit 5
fi
# Removes what a run left that was killed here. A marker replaces the claim.
rm -f /etc/macfleet/.host.*
[ ! -e /etc/macfleet/host.json ] || rm -f /etc/macfleet/.claim.*
new=$(mktemp /etc/macfleet/.host.XXXXXX)
trap 'rm -f "$new"' EXIT
printf '%s' "$1" >"$new"
chmod 0644 "$new"
chown 0:0 "$new"
mv -f "$new" /etc/macfleet/host.json
sync
[ -z "$2" ] || rm -f "/etc/macfleet/pending/$2"
