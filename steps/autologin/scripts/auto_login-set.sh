# Uses: kcpassword verified
# Arguments: USER, SECONDS to wait for the session, kick|stay (restart loginwindow or not), and where
# /etc/kcpassword comes from: given (from stdin), checked (verify the file) or kept (trust the file). Each line
# of stdin is "accepted" or "refused", as the Mac judged a password, and /etc/kcpassword for it in base64.
set -eu
user=$1 seconds=$2 kick=$3 input=$4
file=/etc/kcpassword new=/etc/kcpassword.macfleet token=/etc/macfleet/pending/auto_login
uid=$(id -u "$user")

fail() {
  printf '%s\n' "$2" >&2
  exit "$1"
}

# password prints a file's bytes up to the terminating byte, or nothing if there is none.
password() {
  if walk "$1"; then printf '%s' "$seen"; fi
}

# usable reports whether the file holds a usable password.
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
  fail 70 "launchctl print gui/$uid failed with exit code $status and does not show whether there is a session: $said"
}

# arrived reports whether the session exists. While it starts, launchctl print may exit with any code.
arrived() {
  said=$(launchctl print "gui/$uid" 2>/dev/null) || return 1
  case $said in *'session = Aqua'*) return 0 ;; esac
  return 1
}

# await waits up to $1 seconds for the session.
await() {
  left=$1
  until arrived; do
    [ "$left" -gt 0 ] || return 1
    left=$((left - 1))
    sleep 1
  done
}

# window sets pid to loginwindow's process, or to nothing.
window() {
  said=$(launchctl print system/com.apple.loginwindow 2>/dev/null) || said=''
  pid=${said#*'	pid = '}
  if [ "$pid" = "$said" ]; then pid=''; else pid=${pid%%[!0-9]*}; fi
}

unstarted() {
  rm -f "$token"
  fail 76 "loginwindow cannot be restarted: $1; restart the Mac while it is idle (sudo shutdown -r now) and apply again"
}

# restart restarts loginwindow, which then tries the automatic login. If macOS protects it from kickstart -k, the
# process is killed, so that launchd starts a new one.
restart() {
  status=0
  launchctl kickstart -k system/com.apple.loginwindow || status=$?
  case $status in
    0) return ;;
    1 | 150) ;;
    *) unstarted "launchctl kickstart failed with exit code $status" ;;
  esac
  why="launchctl kickstart -k failed with exit code $status"
  window
  if [ -z "$pid" ]; then
    launchctl kickstart system/com.apple.loginwindow || unstarted "$why, and it has no process to kill"
    return
  fi
  # killall kills every loginwindow, and each user with a background session has one.
  [ "$(pgrep -x loginwindow)" = "$pid" ] ||
    unstarted "$why, and killall would end other users' sessions, too: there are several loginwindow processes (pgrep -xl loginwindow)"
  before=$pid left=10
  killall loginwindow || unstarted "$why, and killall failed"
  window
  while [ -z "$pid" ] || [ "$pid" = "$before" ]; do
    [ "$left" -gt 0 ] || unstarted "$why, and launchd did not restart it after killall"
    left=$((left - 1))
    sleep 1
    window
  done
}

# decoded sets held to the password in the base64 text $1, as password prints it.
decoded() {
  rm -f "$new"
  : >"$new"
  chmod 600 "$new"
  chown root:wheel "$new"
  printf '%s' "$1" | base64 --decode >"$new"
  held=$(password "$new")
}

# note records the state of the password in the file: $1 verified, trying or refused, $2 number of tries. It
# names the file's stamp and the password's time, never the password.
note() {
  mkdir -p "${proof%/*}"
  [ -f "$proof" ] || rm -rf "$proof"
  printf '%s %s %s %s\n' "$1" "$2" "$(stat -f '%i %z %m' "$file")" "$since" >"$proof.new"
  mv -f "$proof.new" "$proof"
}

# clear prints the password in the file. printf is a shell builtin, so no process list shows its arguments.
clear() {
  walk "$file"
  key='7d 89 52 23 d2 bc dd ea a3 b9 1f'
  # shellcheck disable=SC2086 # words of hex digits only
  set -- $seen
  while [ $# -gt 1 ]; do # the last byte terminates the password
    # shellcheck disable=SC2059 # the format is an octal escape
    printf "\\$(printf '%03o' $((0x$1 ^ 0x${key%% *})))"
    key="${key#* } ${key%% *}"
    shift
  done
  echo
}

refused() {
  note refused "$1"
  fail 79 "macOS refuses the password in /etc/kcpassword for $user; loginwindow is not restarted, because macOS would seal the file"
}

# check lets sudo try the password in the file once: wrong tries lock the account.
check() {
  usable || fail 73 "/etc/kcpassword holds no usable password for $user"
  case $(dscl . -read "/Users/$user" AuthenticationAuthority 2>/dev/null) in
    *';tally;'*) fail 80 "the account of $user is locked (too many wrong passwords), so the password in /etc/kcpassword is not tried" ;;
  esac
  # If sudo -v needs no password, it cannot check one.
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
  fail 80 "the password in /etc/kcpassword could not be verified: $said"
}

password_set "$user"
rm -rf "$proof.new" "$new" # left by a killed run
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
# The same password with other padding stays as it is.
if [ -n "$accepted" ]; then
  decoded "$accepted"
  [ -n "$held" ] || fail 71 'the received content of /etc/kcpassword has no password'
  if ! [ -f "$file" ] || [ "$(password "$file")" != "$held" ]; then
    mv -f "$new" "$file"
  fi
elif [ "$input" = given ]; then
  fail 71 'the received content of /etc/kcpassword has no password'
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

# A restart of loginwindow ends a session with everything in it and counts as a login
# attempt. The token marks a restart whose session may still be starting.
if [ "$kick" != kick ] || session; then
  exit 0
fi
if [ -e "$token" ] && await $((seconds / 3)); then
  exit 0
fi
usable || fail 73 "/etc/kcpassword holds no usable password for $user"
screen=$(stat -f %Su /dev/console)
[ "$screen" = root ] || fail 74 "$screen is logged in at the screen: macfleet does not end that session"
status=0
pgrep -f '[R]unner\.Worker|[t]art run|[c]om\.apple\.Virtualization\.VirtualMachine' >/dev/null || status=$?
[ "$status" = 1 ] || fail 75 "loginwindow is not restarted: a virtual machine or a job runs, or pgrep failed (exit code $status)"
mkdir -p "${token%/*}"
: >"$token"
restart
if await "$seconds"; then
  ! usable || note verified 0 # otherwise macOS now keeps the password elsewhere
  exit 0
fi
rm -f "$token"
usable || fail 77 "macOS refused the password in /etc/kcpassword and sealed the file: it is not the password of $user"
fail 78 "no GUI session of $user within $seconds s, though /etc/kcpassword is intact"
