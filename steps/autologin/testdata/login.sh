# One stub for all tools: what a Mac with a login window does. Its state is the
# files of $STATE. It may be killed after a call.
PATH=/usr/bin:/bin
status=0

missing() {
  echo "The domain/default pair of ($1, $2) does not exist" >&2
  status=1
}

session() {
  if [ -e "$STATE/coming" ]; then
    read -r left <"$STATE/coming"
    left=$((left - 1))
    echo "$left" >"$STATE/coming"
    if [ "$left" -lt 1 ]; then
      rm "$STATE/coming"
      echo m1 >"$STATE/session"
    fi
  fi
  [ -e "$STATE/session" ]
}

# kick tries the automatic login; a wrong password is sealed.
kick() {
  echo kick >>"$STATE/kicks"
  wait=3
  [ ! -e "$STATE/slow" ] || wait=1000
  [ ! -e "$STATE/session" ] && [ ! -e "$STATE/coming" ] || echo ended >>"$STATE/ended"
  rm -f "$STATE/session" "$STATE/coming" "$STATE/dead"
  [ "$(cat "$STATE/user" 2>/dev/null)" = m1 ] && [ -e "$ROOT/etc/kcpassword" ] || return
  held=$(od -An -v -tx1 <"$ROOT/etc/kcpassword" | tr -d ' \n')
  case $held in
    "$(cat "$STATE/right")"*) echo "$wait" >"$STATE/coming" ;;
    *) printf '\101\372\067\102\276\331\271\324\243\271\037' >"$ROOT/etc/kcpassword" ;;
  esac
}

case "$name $*" in
  'id -u '*) echo 501 ;;
  'fdesetup status') echo "FileVault is $(cat "$STATE/vault" 2>/dev/null || echo Off)." ;;
  'defaults read /Library/Preferences/com.apple.loginwindow autoLoginUser')
    cat "$STATE/user" 2>/dev/null || missing com.apple.loginwindow autoLoginUser ;;
  'defaults read /Library/Preferences/com.apple.loginwindow autoLoginUserScreenLocked')
    cat "$STATE/locked-screen" 2>/dev/null || missing com.apple.loginwindow autoLoginUserScreenLocked ;;
  'defaults write /Library/Preferences/com.apple.loginwindow autoLoginUserScreenLocked -bool false') echo 0 >"$STATE/locked-screen" ;;
  'defaults read '*DisableAutoLoginClient) missing com.apple.loginwindow DisableAutoLoginClient ;;
  'defaults write /Library/Preferences/com.apple.loginwindow autoLoginUser -string '*) printf '%s\n' "$5" >"$STATE/user" ;;
  'defaults delete /Library/Preferences/com.apple.loginwindow autoLoginUser') rm "$STATE/user" ;;
  'stat -f %Su /dev/console') cat "$STATE/screen" "$STATE/session" 2>/dev/null | grep . || echo root ;;
  'stat -f %Su %u %Sg %Lp %i %z %m '*)
    if [ $# = 4 ]; then
      owner=$(cat "$STATE/owner" 2>/dev/null || echo root:wheel)
      echo "${owner%:*} 0 ${owner#*:} $(stat -c '%a %i %s %Y' "$3")"
    fi
    screen=$(cat "$STATE/screen" "$STATE/session" 2>/dev/null | grep . || echo root)
    echo "$screen 501 wheel 620 7 0 1" ;;
  'stat -f %i %z %m '*) stat -c '%i %s %Y' "$3" ;;
  'dscl . -read /Users/m1 AuthenticationAuthority')
    printf 'AuthenticationAuthority: ;ShadowHash;'
    [ ! -e "$STATE/locked" ] || printf ' ;tally;'
    echo ;;
  'dscl . -read /Users/m1 accountPolicyData')
    if [ -e "$STATE/set" ]; then
      printf 'dsAttrTypeNative:accountPolicyData:\n <?xml version="1.0"?>\n<dict>\n\t<key>creationTime</key>\n\t<real>17.5</real>\n'
      printf '\t<key>passwordLastSetTime</key>\n\t<real>%s</real>\n</dict>\n' "$(cat "$STATE/set")"
    else
      echo 'No such key: accountPolicyData'
    fi ;;
  'sudo -u m1 sudo -k -n -v')
    if [ ! -e "$STATE/free" ]; then
      echo 'sudo: a password is required' >&2
      status=1
    fi ;;
  'sudo -u m1 sudo -k -S -p  -v')
    echo try >>"$STATE/tries"
    IFS= read -r given
    if [ -e "$STATE/odd" ]; then
      echo 'sudo: account validation failure, is your account locked?' >&2
      status=1
    elif [ "$given" != "$(cat "$STATE/clear")" ]; then
      echo 'Sorry, try again.' >&2
      status=1
    fi ;;
  'chown root:wheel '*) [ -e "$2" ] && rm -f "$STATE/owner" || status=1 ;;
  'launchctl print gui/501')
    if session; then
      printf 'gui/501 = {\n\ttype = login\n\tsession = Aqua\n}\n'
    else
      echo 'Could not find domain for user gui: 501' >&2
      status=113
      [ ! -e "$STATE/coming" ] || [ ! -e "$STATE/odd-codes" ] || status=36
    fi ;;
  'launchctl print system/com.apple.loginwindow')
    printf 'system/com.apple.loginwindow = {\n\tstate = running\n'
    [ -e "$STATE/dead" ] || printf '\tpid = %s\n' "$(cat "$STATE/window" 2>/dev/null || echo 99)"
    echo '}' ;;
  'launchctl kickstart -k system/com.apple.loginwindow')
    if [ -e "$STATE/protected" ]; then status=$(cat "$STATE/protected"); else kick; fi ;;
  'launchctl kickstart system/com.apple.loginwindow') kick ;;
  'pgrep -x loginwindow') cat "$STATE/window" "$STATE/switched-out" 2>/dev/null || echo 99 ;;
  'killall loginwindow')
    [ ! -e "$STATE/switched-out" ] || echo ended >>"$STATE/ended"
    if [ -e "$STATE/away" ]; then echo >"$STATE/dead"; else kick; fi
    echo 100 >"$STATE/window" ;;
  'pgrep -f '*) cat "$STATE/work" 2>/dev/null || status=1 ;;
  'sleep 1') ;;
  'base64 --decode' | 'chmod '* | 'mkdir -p '* | 'mv -f '* | 'rm -f '* | 'rm -rf '*) "$name" "$@" || status=$? ;;
  *)
    echo "no stub for $name $*" >&2
    status=127 ;;
esac
[ "$victim $when" != "$number after" ] || kill -9 0
exit "$status"
