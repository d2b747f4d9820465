# $1 is the current claim. $2 is a file that gives root and is removed with it, or empty:
# while the claim exists, no other run relies on that file.
if [ "$(cat /etc/macfleet/claim.json)" = "$1" ] && [ ! -e /etc/macfleet/host.json ]; then
  if [ -n "$2" ]; then rm -f "$2"; fi
  rm -f /etc/macfleet/claim.json
fi
shift 2
