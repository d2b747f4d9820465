# Uses: answer
# Prints the settings of updates, of Spotlight and of addresses for virtual machines, and when the Mac started and what time it is.
code=0
defaults read /Library/Preferences/com.apple.SoftwareUpdate 2>/dev/null || code=$?
say "updates $code"
code=0
defaults read /Library/Preferences/com.apple.commerce AutoUpdate 2>/dev/null || code=$?
say "apps $code"
code=0
defaults read /Library/Preferences/SystemConfiguration/com.apple.InternetSharing.default bootpd 2>/dev/null || code=$?
say "leases $code"
code=0
mdutil -a -s || code=$?
say "spotlight $code"
sysctl -n kern.boottime
date +%s
say "boot $?"
say end
