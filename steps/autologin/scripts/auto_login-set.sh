# Uses: kcpassword verified
# USER, SECONDS to wait for the session, kick|stay, given|checked|kept: whether stdin has the password for
# /etc/kcpassword, whether the file is looked at before it is trusted, or is trusted as it is. A line of stdin
# is "accepted" or "refused", as the Mac answered to a password, and /etc/kcpassword with it in base64.
set -eu
user=$1 seconds=$2 kick=$3 input=$4
file=/etc/kcpassword new=/etc/kcpassword.macfleet token=/etc/macfleet/pending/auto_login
uid=$(id -u "$user")

fail() {
  printf '%s\n' "$2" >&2
  exit "$1"
}

# password prints a file's bytes up to the end of the password; nothing when it has
# none.
password() {
  if walk "$1"; then printf '%s' "$seen"; fi
}

# usable reports whether the file holds a password to log in with.
usable() {
  case $(password "$file") in
    '' | ' 7d' | ' 41 fa 37 42 be d9 b9 d4 '*) return 1 ;;
  esac
}

session() {
  status=0
  said=$(launchctl print "gui/$uid" 2>&1) || status=$?
  case $status in
    112 | 113 | 125) return 1 ;;
    0) case $said in *'session = Aqua'*) return ;; esac ;;
  esac
  fail 70 "launchctl print gui/$uid ended with exit $status and says neither that a session is there nor that none is: $said"
}

# arrived reports whether the session is there. While its domain comes up, launchctl print may end with any code.
arrived() {
  said=$(launchctl print "gui/$uid" 2>/dev/null) || return 1
  case $said in *'session = Aqua'*) return 0 ;; esac
  return 1
}

# await waits so many seconds for the session.
await() {
  left=$1
  until arrived; do
    [ "$left" -gt 0 ] || return 1
    left=$((left - 1))
    sleep 1
  done
}

# window sets pid to loginwindow's process, nothing where it has none or nobody knows.
window() {
  said=$(launchctl print system/com.apple.loginwindow 2>/dev/null) || said=''
  pid=${said#*'	pid = '}
  if [ "$pid" = "$said" ]; then pid=''; else pid=${pid%%[!0-9]*}; fi
}

unstarted() {
  rm -f "$token"
  fail 76 "loginwindow cannot be restarted: $1; restart the Mac while it is idle (sudo shutdown -r now), and apply again"
}

# restart starts loginwindow anew, which tries the automatic login. Where macOS protects its services from kickstart -k,
# the process is ended, and launchd must start another one.
restart() {
  status=0
  launchctl kickstart -k system/com.apple.loginwindow || status=$?
  case $status in
    0) return ;;
    1 | 150) ;;
    *) unstarted "launchctl kickstart ended with exit $status" ;;
  esac
  why="launchctl kickstart -k ended with exit $status"
  window
  if [ -z "$pid" ]; then
    launchctl kickstart system/com.apple.loginwindow || unstarted "$why, and it has no process that could be ended"
    return
  fi
  # killall ends every loginwindow, and each account that was switched out at the screen has one of its own.
  [ "$(pgrep -x loginwindow)" = "$pid" ] ||
    unstarted "$why, and killall would end other sessions with it: it is not the only loginwindow (pgrep -xl loginwindow)"
  before=$pid left=10
  killall loginwindow || unstarted "$why, and killall could not end it"
  window
  while [ -z "$pid" ] || [ "$pid" = "$before" ]; do
    [ "$left" -gt 0 ] || unstarted "$why, and launchd does not start it again after killall"
    left=$((left - 1))
    sleep 1
    window
  done
}

# decoded sets held to the password that the base64 text $1 holds, as password prints it.
decoded() {
  rm -f "$new"
  : >"$new"
  chmod 600 "$new"
  chown root:wheel "$new"
  printf '%s' "$1" | base64 --decode >"$new"
  held=$(password "$new")
}

# note writes down what is known of the password in the file: $1 verified, trying or refused, $2 how often
# it was tried. It names the file and the time of the password, and nothing of the password itself.
note() {
  mkdir -p "${proof%/*}"
  [ -f "$proof" ] || rm -rf "$proof"
  printf '%s %s %s %s\n' "$1" "$2" "$(stat -f '%i %z %m' "$file")" "$since" >"$proof.new"
  mv -f "$proof.new" "$proof"
}

# clear prints the password in the file. printf is the shell's own: no process shows what it is given.
clear() {
  walk "$file"
  key='7d 89 52 23 d2 bc dd ea a3 b9 1f'
  # shellcheck disable=SC2086 # words of hex digits alone
  set -- $seen
  while [ $# -gt 1 ]; do # the last byte ends the password
    # shellcheck disable=SC2059 # an octal escape, made of a number
    printf "\\$(printf '%03o' $((0x$1 ^ 0x${key%% *})))"
    key="${key#* } ${key%% *}"
    shift
  done
  echo
}

refused() {
  note refused "$1"
  fail 79 "/etc/kcpassword holds a password that macOS refuses $user; loginwindow is not restarted with it, because macOS would seal the file"
}

# check has sudo try the password in the file, once: a wrong try counts against the account.
check() {
  usable || fail 73 "/etc/kcpassword holds no password to log $user in with"
  case $(dscl . -read "/Users/$user" AuthenticationAuthority 2>/dev/null) in
    *';tally;'*) fail 80 "the account of $user is locked after too many wrong passwords, so the one in /etc/kcpassword is not tried" ;;
  esac
  # Where sudo -v asks for no password, its answer says nothing about one.
  if sudo -u "$user" sudo -k -n -v </dev/null 2>/dev/null; then return; fi
  tries=1
  if [ -f "$proof" ] && read -r word count stamp <"$proof" && [ "$stamp" = "$(stat -f '%i %z %m' "$file") $since" ]; then
    [ "$word" != refused ] || refused "$count"
    [ "$word" != trying ] || tries=$((count + 1))
  fi
  [ "$tries" -lt 3 ] || refused 2
  note trying "$tries"
  if said=$(clear | sudo -u "$user" sudo -k -S -p '' -v 2>&1); then
    note verified "$tries"
    return
  fi
  case $said in *'incorrect password'* | *'try again'*) refused "$tries" ;; esac
  fail 80 "whether macOS takes the password in /etc/kcpassword is not known: $said"
}

password_set "$user"
rm -rf "$proof.new" # a run that was killed left it
accepted='' wrong=''
if [ "$input" != kept ]; then
  while read -r word content; do
    case $word in
      accepted) accepted=$content ;;
      refused) wrong="$wrong $content" ;;
    esac
  done
  trap 'rm -f "$new"' EXIT
fi
# What another writer padded otherwise is the same password and stays.
if [ -n "$accepted" ]; then
  decoded "$accepted"
  [ -n "$held" ] || fail 71 'what arrived for /etc/kcpassword is no password'
  if ! [ -f "$file" ] || [ "$(password "$file")" != "$held" ]; then
    mv -f "$new" "$file"
  fi
elif [ "$input" = given ]; then
  fail 71 'what arrived for /etc/kcpassword is no password'
fi
chown root:wheel "$file"
chmod 600 "$file"
if [ "$(defaults read /Library/Preferences/com.apple.loginwindow autoLoginUser 2>/dev/null)" != "$user" ]; then
  defaults write /Library/Preferences/com.apple.loginwindow autoLoginUser -string "$user"
fi
if [ "$(defaults read /Library/Preferences/com.apple.loginwindow autoLoginUserScreenLocked 2>/dev/null)" = 1 ]; then
  defaults write /Library/Preferences/com.apple.loginwindow autoLoginUserScreenLocked -bool false
fi

if [ -n "$accepted" ]; then
  note verified 0
elif [ "$input" = checked ]; then
  for content in $wrong; do
    decoded "$content"
    [ "$(password "$file")" != "$held" ] || refused 0
  done
  check
fi

# A kick ends a session with all that runs in it, and counts as a login attempt.
# The token says that one was made, whose session may still be coming.
if [ "$kick" != kick ] || session; then
  exit 0
fi
if [ -e "$token" ] && await $((seconds / 3)); then
  exit 0
fi
usable || fail 73 "/etc/kcpassword holds no password to log $user in with"
screen=$(stat -f %Su /dev/console)
[ "$screen" = root ] || fail 74 "the screen is $screen's: no session is ended"
status=0
pgrep -f '[R]unner\.Worker|[t]art run|[c]om\.apple\.Virtualization\.VirtualMachine' >/dev/null || status=$?
[ "$status" = 1 ] || fail 75 "a virtual machine or a job runs, or pgrep cannot tell (exit $status): loginwindow is not restarted"
mkdir -p "${token%/*}"
: >"$token"
restart
if await "$seconds"; then
  ! usable || note verified 0 # else macOS keeps the password elsewhere now
  exit 0
fi
rm -f "$token"
usable || fail 77 "macOS refused the password in /etc/kcpassword and sealed the file: it is not the one of $user"
fail 78 "no session of $user came up within $seconds s, though /etc/kcpassword is intact"
