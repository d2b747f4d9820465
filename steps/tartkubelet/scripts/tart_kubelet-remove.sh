# Uses: work service
# Removes the kubelet. $1 "program" to delete the program, if the receipt marks it as macfleet's, $2 "force"
# to ignore running virtual machines.
set -e
busy=$(work)
if [ -n "$busy" ] && [ "$2" != force ]; then
  printf '%s\n' "$busy" >&2
  echo "virtual machines run: one started after the plan was made, so tart-kubelet is not removed" >&2
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
