# Uses: put service work agent
# Writes the runner's job and starts it, and waits until it listens for jobs.
# $1 the login user, $2 the runner's folder, $3 the job's label, $4 its property list, $5 how to start it: "load", "kick", or
# "keep" a running one, $6 the search path of jobs, $7 the address where it is registered, $8 "made" if macfleet installed
# the programs, $9 "force" to ignore a job that runs.
set -e
user=$1 root=$2 label=$3 wanted=$4 way=$5 search=$6 scope=$7 made=$8
[ "$way" = keep ] || idle_or_leave "$9"
begin github_runner
rm -rf "$root"/.macfleet.* # of an installation that was cut off
home=/Users/$user
list=$home/Library/LaunchAgents/$label.plist
log=$home/Library/Logs/$label/stdout.log
uid=$(id -u "$user")
target=gui/$uid/$label
if ! [ -s "$root/bin/runsvc.sh" ]; then
  echo "$root/bin/runsvc.sh is empty or missing: an update was cut off; apply again to install the programs" >&2
  exit 1
fi
put /usr/local/lib/macfleet/github_runner.receipt "root $root
label $label
scope $scope
programs ${made:-taken over}
" 0644
# An update of the runner finds its service by this path, and writes the file only where it exists.
if ! cmp -s "$root/bin/runsvc.sh" "$root/runsvc.sh"; then
  rm -f "$root/runsvc.sh"
  cp "$root/bin/runsvc.sh" "$root/runsvc.sh"
fi
chmod 0755 "$root/runsvc.sh"
chown "$user:staff" "$root/runsvc.sh"
# config.sh replaces .path by the search path of its caller, which lacks Homebrew over SSH.
put_for "$user" "$root/.path" "$search" 0644
rm -f "$root/.service" # of svc.sh, which would refuse to remove the runner
mkdir -p "$home/Library/LaunchAgents" "${log%/*}"
chown "$user:staff" "$home/Library/LaunchAgents" "$home/Library/Logs" "${log%/*}"
if ! [ -f "$list" ] || ! printf '%s' "$wanted" | cmp -s - "$list"; then put_for "$user" "$list" "$wanted" 0644; fi
chmod 0644 "$list"
chown "$user:staff" "$list"

code=0
said=$(launchctl print "gui/$uid" 2>/dev/null) || code=$?
case $code:$said in
  0:*'session = Aqua'*) ;;
  *)
    echo "$user is not logged in at the screen, so launchd cannot start the runner; add auto_login to the fleet, or log in over VNC, then apply again" >&2
    exit 1
    ;;
esac

# heard counts how often a listener was ready for jobs.
heard() {
  count=0
  [ ! -f "$log" ] || count=$(grep -c 'Listening for Jobs' "$log") || :
}
heard
before=$count
look "$target"
[ "$code" = 0 ] || way=load
[ "$way$pid" != keep ] || way=kick
if [ "$way" = load ]; then
  part "$target"
  launchctl enable "$target"
  tries=0
  until launchctl bootstrap "gui/$uid" "$list"; do
    look "$target"
    [ "$code" != 0 ] || break
    tries=$((tries + 1))
    [ "$tries" -lt 4 ] || { echo "launchd refuses $list" >&2; exit 1; }
    sleep 1
  done
elif [ "$way" = kick ]; then
  launchctl kickstart -k "$target"
fi
if [ "$way" != keep ]; then
  tries=0 gone=0
  until [ "$count" -gt "$before" ]; do
    tries=$((tries + 1))
    look "$target"
    if [ -z "$pid" ]; then gone=$((gone + 1)); else gone=0; fi
    if [ "$gone" -gt 3 ] || [ "$tries" -gt 35 ]; then
      last=''
      # the service's own lines about the exit say nothing about the cause
      [ ! -f "$log" ] || last=$(tail -n 20 "$log" | grep -E -v '^(Start|Runner listener exit|$)' | tail -n 1) || :
      echo "the runner does not listen for jobs: $last (log: $log)" >&2
      exit 70
    fi
    sleep 1
    heard
  done
fi
sync
