# Uses: receipt put service job
# Updates the job and restarts it, so that the process reads everything again.
# $1 the login user, $2 the property list, $3 how to restart it: "load", "kick" or "ask", $4… jobs to
# replace, each as its launchd target and its property list.
set -e
user=$1 wanted=$2 how=$3
shift 3
label=dev.macfleet.tart-kubelet
program=/usr/local/bin/tart-kubelet
log=/var/log/tart-kubelet.log
begin tart_kubelet

mkdir -p /var/log/tart-vms /var/lib/tart-userdata
[ -e "$log" ] || : >"$log"
chown "$user:staff" /var/log/tart-vms /var/lib/tart-userdata "$log"

# Stop other kubelets first: two on one Mac delete each other's virtual machines.
while [ "$#" -ge 2 ]; do
  [ -z "$1" ] || leave "$1"
  [ -z "$2" ] || rm -f "$2"
  shift 2
done

start tart_kubelet "$label" "$program" "$wanted" "$how"
if ! stays tart_kubelet "$program" "$wanted"; then
  tail -n 20 "$log" >&2 || :
  look "system/$label"
  state=$(printf '%s\n' "$said" | grep -E '^	last [a-z ]+ = ' | tr -d '\t' | tr '\n' ';')
  state=${state:-not loaded}
  echo "tart-kubelet does not stay up: $(tail -n 1 "$log") (launchd: ${state%;}; log: $log)" >&2
  exit 70
fi
sync
