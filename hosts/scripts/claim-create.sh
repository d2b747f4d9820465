set -e
mkdir -p /etc/macfleet
chmod 0755 /etc/macfleet
new=$(mktemp /etc/macfleet/.claim.XXXXXX)
trap 'rm -f "$new"' EXIT
printf '%s' "$1" >"$new"
chmod 0644 "$new"
chown 0:0 "$new"
ln "$new" /etc/macfleet/claim.json 2>/dev/null || [ -e /etc/macfleet/claim.json ]
cat /etc/macfleet/claim.json
