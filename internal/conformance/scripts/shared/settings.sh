# What each experiment begins with. $1 is the login user, the rest is the experiment's own. All that is made lies
# in one folder, so that restore.sh finds it, also after an experiment that was cut off.
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
# pf that somebody enabled without a reference goes off with the last reference: what notes it lets it be enabled again.
note_pf() { [ "$(pf_state)" != Enabled ] || : >"$home/pf-was-on"; }
back_pf() {
  if [ -f "$home/pf-was-on" ] && [ "$(pf_state)" != Enabled ]; then pfctl -e >/dev/null 2>&1; fi
}
# begin is what an experiment begins with. A broken connection does not end it: restore.sh makes a file, which it looks
# at before each step, and waits until it has ended.
begin() {
  [ -f "$home/build-2" ] || exit 1 # all was taken back before it began
  echo "$$" >"$home/process"
  trap 'rm -f "$home/process"' EXIT
  trap : HUP PIPE
  step
}
step() { [ ! -e "$home/stop" ] || exit 1; }
