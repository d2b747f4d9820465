# $1 is the claim as it stands. $2 is a file that gives root and goes with it, or empty:
# while the claim stands, nobody else relies on that file.
if [ "$(cat /etc/macfleet/claim.json)" = "$1" ] && [ ! -e /etc/macfleet/host.json ]; then
  if [ -n "$2" ]; then rm -f "$2"; fi
  rm -f /etc/macfleet/claim.json
fi
shift 2
