# Restarts loginwindow, which ends the GUI session.
begin
before=$(pgrep -x loginwindow | head -n 1)
launchctl kickstart -k system/com.apple.loginwindow
code=$?
sleep 10
after=$(pgrep -x loginwindow | head -n 1)
say 'exit of kickstart' "$code"
if [ -n "$after" ] && [ "$before" != "$after" ]; then
  say 'another process' yes
else
  say 'another process' no
fi
