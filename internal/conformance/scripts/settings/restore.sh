# Reverts all experiments. It may run at any time, and twice. An experiment whose connection broke
# continues, so it is stopped first.
: >"$home/stop"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
  [ -e "$home/process" ] || break
  sleep 3
done
if [ -e "$home/process" ] && ps -p "$(cat "$home/process")" -o command= | grep -q macfleet-conformance; then
  say restored "no: an experiment still runs, process $(cat "$home/process"), and stops at its next step"
  exit 0
fi
left=
launchctl bootout "system/$label" >/dev/null 2>&1 || :
rm -f "$plist"
[ ! -e "$plist" ] || left=$plist
if [ -f "$home/token" ]; then
  pfctl -X "$(cat "$home/token")" >/dev/null 2>&1 || :
fi
if [ -f "$home/vm" ]; then
  as_user tart stop "$vm" >/dev/null 2>&1 || :
  as_user tart delete "$vm" >/dev/null 2>&1 || :
  if as_user tart list --source local --quiet 2>/dev/null | grep -qx "$vm"; then left="the virtual machine $vm"; fi
fi
back_pf
if [ -f "$home/pf-was-on" ] && [ "$(pf_state)" != Enabled ]; then left='pf, which was on, is off'; fi
[ -n "$left" ] || rm -rf "$home"
if [ -n "$left" ]; then
  say restored "no: $left"
elif [ -e "$home" ]; then
  say restored "no: $home"
else
  say restored yes
fi
