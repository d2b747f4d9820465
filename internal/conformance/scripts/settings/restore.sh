# Takes back all that the experiments made. It may run at any time, and twice.
launchctl bootout "system/$label" >/dev/null 2>&1 || :
rm -f "$plist"
if [ -f "$home/token" ]; then
  pfctl -X "$(cat "$home/token")" >/dev/null 2>&1 || :
fi
if [ -f "$home/vm" ]; then
  as_user tart stop "$vm" >/dev/null 2>&1 || :
  as_user tart delete "$vm" >/dev/null 2>&1 || :
fi
rm -rf "$home"
if [ -e "$home" ] || [ -e "$plist" ]; then
  say restored "no: $home or $plist is still there"
else
  say restored yes
fi
