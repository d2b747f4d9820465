# Uses: put
# Brings the job to what is wanted, and starts it anew: no process goes on with what it had read before.
# $1 the login user, $2 the property list, $3 "kick" where launchd has this very description, $4… jobs of
# the same program that make way, each as its target in launchd and its property list.
set -e
user=$1 wanted=$2 way=$3
shift 3
label=dev.macfleet.tart-kubelet
plist=/Library/LaunchDaemons/$label.plist
log=/var/log/tart-kubelet.log
line='
'
begin tart_kubelet

mkdir -p /var/log/tart-vms /var/lib/tart-userdata
[ -e "$log" ] || : >"$log"
chown "$user:staff" /var/log/tart-vms /var/lib/tart-userdata "$log"

# look sets the exit code and the pid that launchd gives for the service $1.
look() {
  code=0
  said=$(launchctl print "$1" 2>/dev/null) || code=$?
  pid=${said#*"$line	pid = "}
  if [ "$pid" = "$said" ]; then pid=''; else pid=${pid%%"$line"*}; fi
}

# leave takes the service $1 out of launchd. Its label is free only when print says 113: bootout returns
# before that, and what is loaded in between is refused and gone.
leave() {
  look "$1"
  [ "$code" != 113 ] && [ "$code" != 112 ] && [ "$code" != 125 ] || return 0
  launchctl bootout "$1" 2>/dev/null || :
  tries=0
  while look "$1" && [ "$code" = 0 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 12 ] || { echo "launchd does not let go of $1" >&2; exit 1; }
    sleep 1
  done
}

# Two kubelets on one Mac delete each other's virtual machines: the others go first.
while [ "$#" -ge 2 ]; do
  [ -z "$1" ] || leave "$1"
  [ -z "$2" ] || rm -f "$2"
  shift 2
done

# The plist is rewritten only where it differs, and loaded only where launchd has another description: each
# registration makes the database of background items grow.
if ! [ -f "$plist" ] || ! printf '%s' "$wanted" | cmp -s - "$plist"; then put "$plist" "$wanted" 0644; fi
chmod 0644 "$plist"
chown 0:0 "$plist"
look "system/$label"
before=$pid
if [ "$way" = kick ] && [ "$code" = 0 ]; then
  launchctl kickstart -k "system/$label"
else
  leave "system/$label"
  launchctl enable "system/$label"
  tries=0
  until launchctl bootstrap system "$plist"; do
    look "system/$label"
    [ "$code" != 0 ] || break
    tries=$((tries + 1))
    [ "$tries" -lt 4 ] || { echo "launchd refuses $plist" >&2; exit 1; }
    sleep 1
  done
fi

# settled waits at most $1 seconds for a new process, and looks whether it is the same one 5 seconds later:
# in a crash loop each start shows one for a moment.
settled() {
  tries=0
  look "system/$label"
  while [ -z "$pid" ] || [ "$pid" = "$before" ]; do
    tries=$((tries + 1))
    [ "$tries" -le "$1" ] || return 1
    sleep 1
    look "system/$label"
  done
  first=$pid
  sleep 5
  look "system/$label"
  [ "$pid" = "$first" ]
}
if ! settled 20; then
  launchctl kickstart -k "system/$label" || :
  if ! settled 5; then
    tail -n 20 "$log" >&2 || :
    look "system/$label"
    state=$(printf '%s\n' "$said" | grep -E '^	(state|last [a-z ]+) = ' | tr -d '\t' | tr '\n' ';')
    echo "tart-kubelet does not stay up: ${state:-launchd does not have it;} its log $log ends with: $(tail -n 1 "$log")" >&2
    exit 70
  fi
fi
sync
