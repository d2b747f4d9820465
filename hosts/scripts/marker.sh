[ -e /etc/macfleet/host.json ] || exit 4
cat /etc/macfleet/host.json
