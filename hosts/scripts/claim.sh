[ -e /etc/macfleet/claim.json ] || exit 4
cat /etc/macfleet/claim.json
