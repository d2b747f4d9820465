# Uses: kcpassword
# USER, SECONDS to wait for the session, kick|stay, given|kept: whether stdin
# has the password and the wanted content of /etc/kcpassword in base64, a line each.
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

# await waits so many seconds for the session.
await() {
  left=$1
  until session; do
    [ "$left" -gt 0 ] || return 1
    left=$((left - 1))
    sleep 1
  done
}

# What another writer padded otherwise is the same password and stays.
if [ "$input" = given ]; then
  read -r _
  read -r wanted
  trap 'rm -f "$new"' EXIT
  rm -f "$new"
  : >"$new"
  chmod 600 "$new"
  chown root:wheel "$new"
  printf '%s' "$wanted" | base64 --decode >"$new"
  wanted=$(password "$new")
  [ -n "$wanted" ] || fail 71 'what arrived for /etc/kcpassword is no password'
  if ! [ -f "$file" ] || [ "$(password "$file")" != "$wanted" ]; then
    mv -f "$new" "$file"
  fi
fi
chown root:wheel "$file"
chmod 600 "$file"
if [ "$(defaults read /Library/Preferences/com.apple.loginwindow autoLoginUser 2>/dev/null)" != "$user" ]; then
  defaults write /Library/Preferences/com.apple.loginwindow autoLoginUser -string "$user"
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
launchctl kickstart -k system/com.apple.loginwindow || {
  status=$?
  rm -f "$token"
  fail 76 "loginwindow cannot be restarted: launchctl kickstart ended with exit $status"
}
if await "$seconds"; then
  exit 0
fi
rm -f "$token"
usable || fail 77 "macOS refused the password in /etc/kcpassword and sealed the file: it is not the one of $user"
fail 78 "no session of $user came up within $seconds s, though /etc/kcpassword is intact"
