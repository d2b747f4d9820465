# Uses: answer
# Prints macOS's list of networks that every program may use, when it was written, when the Mac started, the bridge of virtual machines
# and who answers there, and what the last job in the session reached. $1 that job's file.
code=0
defaults read com.apple.network.local-network 2>/dev/null || code=$?
say "keys $code"
code=0
stat -f %m /var/root/Library/Preferences/com.apple.network.local-network.plist 2>/dev/null || code=$?
say "written $code"
sysctl -n kern.boottime
say "boot $?"
code=0
ifconfig bridge100 2>/dev/null || code=$?
say "bridge $code"
if [ "$code" = 0 ]; then
  arp -an || code=$?
  say "neighbours $code"
fi
if [ -f "$1" ]; then
  read -r line <"$1" || :
  printf '%s\n' "$line"
  say "reached 0"
fi
say end
