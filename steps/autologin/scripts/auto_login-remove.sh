# USER: disables this user's automatic login. The session stays open.
set -eu
if [ "$(defaults read /Library/Preferences/com.apple.loginwindow autoLoginUser 2>/dev/null)" = "$1" ]; then
  defaults delete /Library/Preferences/com.apple.loginwindow autoLoginUser
fi
rm -f /etc/kcpassword /etc/kcpassword.macfleet /etc/macfleet/kcpassword
