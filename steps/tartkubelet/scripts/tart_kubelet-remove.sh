# Uses: work
# Takes the Node's agent away. $1 is "program" where the receipt says that the program is macfleet's. $2 is
# "force" where it does not wait for virtual machines to end.
set -e
busy=$(work)
if [ -n "$busy" ] && [ "$2" != force ]; then
  printf '%s\n' "$busy" >&2
  echo "tart-kubelet is not removed while virtual machines run; one has begun since macfleet looked" >&2
  exit 75
fi
target=system/dev.macfleet.tart-kubelet
mkdir -p /etc/macfleet/pending
: >/etc/macfleet/pending/tart_kubelet
code=0
launchctl print "$target" >/dev/null 2>&1 || code=$?
if [ "$code" = 0 ]; then
  launchctl bootout "$target" 2>/dev/null || :
  tries=0
  while launchctl print "$target" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 30 ] || { echo "launchd does not let go of $target" >&2; exit 1; }
    sleep 1
  done
fi
rm -f /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist
rm -rf /etc/tart-kubelet
[ "$1" != program ] || rm -f /usr/local/bin/tart-kubelet /usr/local/bin/.tart-kubelet.*
rm -f /usr/local/lib/macfleet/tart_kubelet.receipt
sync
