# Loads a job, replaces its program with another build, kickstarts it, and then loads it again. The
# two builds were sent before.
begin
cat >"$plist" <<END
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>Label</key><string>$label</string>
<key>ProgramArguments</key><array><string>$home/daemon</string></array>
<key>RunAtLoad</key><true/><key>KeepAlive</key><true/><key>ThrottleInterval</key><integer>10</integer>
</dict></plist>
END
chown root:wheel "$plist"
chmod 0644 "$plist"
page() { launchctl print "system/$label" 2>&1; }
# judged prints the state of the job: running, or why it exited.
judged() {
  page >"$home/page"
  if grep -q '^	state = running' "$home/page"; then
    echo running
  elif grep -q 'OS_REASON_CODESIGNING' "$home/page"; then
    echo killed
  elif grep -q '^	last exit code = 78' "$home/page"; then
    echo 'exit 78'
  else
    echo other
  fi
}
place() {
  cp "$home/$1" "$home/new"
  chmod 0755 "$home/new"
  mv -f "$home/new" "$home/daemon"
}
place build-1
step
launchctl bootstrap system "$plist" || exit 1
sleep 3
say loaded "$(judged)"
step
place build-2
launchctl kickstart -k "system/$label"
say 'exit of kickstart' "$?"
sleep 15
step
say 'kickstart after a swap' "$(judged)"
echo '--- launchctl print'
page
echo '---'
launchctl bootout "system/$label"
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  page >/dev/null || break
  sleep 1
done
step
launchctl bootstrap system "$plist"
sleep 3
step
say 'loaded again' "$(judged)"
launchctl kickstart -k "system/$label"
sleep 3
say 'kickstart of the same bytes' "$(judged)"
launchctl bootout "system/$label" || :
rm -f "$plist"
