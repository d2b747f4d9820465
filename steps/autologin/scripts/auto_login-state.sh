# Uses: answer kcpassword verified
# $1 the login user, $2 "traces": stop early if the marker has no digest of the step. Each tool's output is
# followed by a line with its name and exit code. No byte of /etc/kcpassword leaves the host, only its kind.
answer() {
  printf '%s' "$3"
  say "$1 $2"
}

preference() {
  status=0
  said=$(defaults read "$2" "$3" 2>&1) || status=$?
  answer "$1" "$status" "$said"
}

# look sets kind to the kind of content of a file.
look() {
  end=none
  if walk "$1"; then end=there; fi
  case "$end$seen" in
    'there 7d') kind=empty ;;
    'there 41 fa 37 42 be d9 b9 d4 '* | 'none 41 fa 37 42 be d9 b9 d4'*) kind=sealed ;;
    there*) kind=present ;;
    *) kind=unterminated ;;
  esac
}

traces() {
  [ -e /etc/macfleet/host.json ] || return 1
  grep -qF '"auto_login"' /etc/macfleet/host.json
  [ $? != 1 ]
}

if [ "$2" = traces ] && ! traces; then
  say nothing
  exit
fi
status=0
said=$(fdesetup status 2>&1) || status=$?
answer filevault "$status" "$said"

managed='/Library/Managed Preferences/com.apple.loginwindow'
if [ -e "$managed.plist" ]; then
  preference managed "$managed" com.apple.login.mcx.DisableAutoLoginClient
else
  answer managed 1 "$managed.plist does not exist"
fi
preference forbidden /Library/Preferences/com.apple.loginwindow com.apple.login.mcx.DisableAutoLoginClient
preference user /Library/Preferences/com.apple.loginwindow autoLoginUser
[ "$(defaults read /Library/Preferences/com.apple.loginwindow autoLoginUserScreenLocked 2>/dev/null)" != 1 ] || answer locked 0 1

file=/etc/kcpassword kind=''
if [ -f "$file" ] && [ ! -L "$file" ]; then
  look "$file"
elif [ -e "$file" ] || [ -L "$file" ]; then
  answer kcpassword 1 'not a plain file'
else
  answer kcpassword 0 absent
fi

# One stat shows the file's access and the owner of the screen. If the file has a password, its stamp, the
# password's time and the last note say whether it was verified.
status=0
[ -n "$kind" ] || file=''
all=$(stat -f '%Su %u %Sg %Lp %i %z %m' ${file:+"$file"} /dev/console 2>&1) || status=$?
while read -r owner number group mode stamp; do
  [ -z "$kind" ] || answer kcpassword "$status" "$kind $owner:$group $mode"
  if [ "$kind$status" = present0 ]; then
    password_set "$1"
    note=''
    [ ! -f "$proof" ] || read -r note <"$proof" || note=''
    # Left by a killed run: the password is verified again, and the files go.
    case $note in
      '' | verified*) { [ ! -e "$proof.new" ] && [ ! -e "$file.macfleet" ]; } || note="trying 0 $stamp $since" ;;
    esac
    answer proof 0 "file $stamp
password $since
note $note"
  fi
  kind='' screen=$owner uid=$number
done <<EOF
$all
EOF
answer console "$status" "$screen"

status=0
[ "$screen" = "$1" ] || uid=$(id -u "$1") || exit
said=$(launchctl print "gui/$uid" 2>&1) || status=$?
if [ "$status" = 0 ]; then
  case $said in
    *'session = Aqua'*) answer session 0 Aqua; say end; exit ;;
    *) said='no word of an Aqua session' ;;
  esac
fi
answer session "$status" "$said"

status=0
said=$(launchctl print system/com.apple.loginwindow 2>&1) || status=$?
if [ "$status" = 0 ]; then
  case $said in
    *'	pid = '*) said=alive ;;
    *) said=dead ;;
  esac
fi
answer loginwindow "$status" "$said"

# The brackets keep pgrep from matching its own argument list.
status=0
said=$(pgrep -f '[R]unner\.Worker|[t]art run|[c]om\.apple\.Virtualization\.VirtualMachine' 2>&1) || status=$?
answer work "$status" "$said"
say end
