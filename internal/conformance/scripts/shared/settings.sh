# The start of each experiment. $1 is the login user, the rest is the experiment's own. All files are
# in one folder, so that restore.sh also finds those of an aborted experiment.
PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
user=$1
shift
home=/usr/local/lib/macfleet-conformance
label=dev.macfleet.conformance
plist=/Library/LaunchDaemons/$label.plist
vm=macfleet-conformance
cd / || exit 1
mkdir -p "$home" || exit 1
say() { printf '%s: %s\n' "$1" "$2"; }
as_user() { sudo -n -H -u "$user" "$@"; }
references() { pfctl -s References 2>/dev/null | grep -c '[0-9][0-9]* *[0-9]' || :; }
points() { { pfctl -sr; pfctl -sn; } 2>/dev/null | grep -c 'com.apple.internet-sharing' || :; }
pf_state() { pfctl -s info 2>/dev/null | head -n 1 | cut -d ' ' -f 2; }
# Releasing the last reference disables a pf that was enabled without one. note_pf records that it was
# enabled, so that back_pf can enable it again.
note_pf() { [ "$(pf_state)" != Enabled ] || : >"$home/pf-was-on"; }
back_pf() {
  if [ -f "$home/pf-was-on" ] && [ "$(pf_state)" != Enabled ]; then pfctl -e >/dev/null 2>&1; fi
}
# A broken connection does not end an experiment: it checks for restore.sh's stop file before each
# step, and restore.sh waits until it has exited.
begin() {
  [ -f "$home/build-2" ] || exit 1 # all was taken back before it began
  echo "$$" >"$home/process"
  trap 'rm -f "$home/process"' EXIT
  trap : HUP PIPE
  step
}
step() { [ ! -e "$home/stop" ] || exit 1; }
