# Uses: work service
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
leave "$target"
rm -f /Library/LaunchDaemons/dev.macfleet.tart-kubelet.plist
rm -rf /etc/tart-kubelet
[ "$1" != program ] || rm -f /usr/local/bin/tart-kubelet /usr/local/bin/.tart-kubelet.*
rm -f /usr/local/lib/macfleet/tart_kubelet.job /usr/local/lib/macfleet/tart_kubelet.receipt
sync
