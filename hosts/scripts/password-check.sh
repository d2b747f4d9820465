# Tries a password once. $1 is the time in seconds since 1970, for the
# record, $2 the notes of earlier tries that the caller has read; the input is
# the password and its seal, one per line.
# macOS locks an account after a few wrong tries, and a locked account makes the host
# unreachable. The try is recorded before it is made, so that a
# run that dies here can't repeat it.
set -e
IFS= read -r password
IFS= read -r seal
dir=$HOME/.macfleet
mkdir -p "$dir"
chmod 0700 "$dir"

# One try at a time: a password that two runs try at once would be tried
# twice. A run that died leaves its lock, which expires slightly after a script's time limit.
# The lock contains its start time as soon as it exists.
own=$(mktemp "$dir/.try.XXXXXX")
trap 'rm -f "$own"' EXIT
date +%s >"$own"
if ! ln "$own" "$dir/trying" 2>/dev/null; then
  since=$(cat "$dir/trying" 2>/dev/null || date +%s)
  case $since in '' | *[!0-9]*) since=0 ;; esac
  # A clock that was set back must not extend this forever.
  age=$(($(date +%s) - since))
  if [ "$age" -lt 70 ] && [ "$age" -gt -70 ]; then
    echo "another run is trying a password here" >&2
    exit 8
  fi
  rm -rf "$dir/trying"
  if ! ln "$own" "$dir/trying"; then
    echo "another run is trying a password here" >&2
    exit 8
  fi
fi
trap 'rm -f "$dir/trying"' EXIT
rm -f "$dir"/.try.*
# Another run's try may have changed a line without changing their number.
remembered=''
if [ -f "$dir/refused" ]; then
  while read -r _ what count when more; do
    [ "$what" = refused ] || what=trying
    try=$what$count
    case $count in '' | *[!0-9]*) try='?' ;; esac
    case $when in '' | *[!0-9]*) try='?' ;; esac
    [ -z "$more" ] || try='?'
    remembered="$remembered$try;"
  done <"$dir/refused"
fi
if [ "$remembered" != "$2" ]; then
  echo "another run has tried a password here meanwhile" >&2
  exit 7
fi

# record replaces the note about this password with its arguments, or removes it.
record() {
  {
    if [ -f "$dir/refused" ]; then
      while IFS= read -r line; do
        case $line in
          "$seal "*) ;;
          *) printf '%s\n' "$line" ;;
        esac
      done <"$dir/refused"
    fi
    [ $# = 0 ] || printf '%s %s %s %s\n' "$seal" "$@"
  } >"$dir/refused.new"
  chmod 0600 "$dir/refused.new"
  if [ -s "$dir/refused.new" ]; then
    mv -f "$dir/refused.new" "$dir/refused"
  else
    rm -f "$dir/refused.new" "$dir/refused"
  fi
}

case $(dscl . -read "/Users/$(id -un)" AuthenticationAuthority 2>/dev/null) in
  *';tally;'*)
    echo "the account is locked after too many wrong passwords" >&2
    exit 5
    ;;
esac
# If sudo -v does not prompt for a password, its answer says nothing about the password.
if sudo -k -n -v </dev/null 2>/dev/null; then
  echo "sudo -v asks for no password here, so none can be checked" >&2
  exit 6
fi
tries=1
if [ -f "$dir/refused" ]; then
  while read -r known _ count _; do
    [ "$known" != "$seal" ] || tries=$((count + 1))
  done <"$dir/refused"
fi
record trying "$tries" "$1"
if said=$(printf '%s\n' "$password" | sudo -k -S -p '' -v 2>&1); then
  record
  exit 0
fi
case $said in
  *'incorrect password'* | *'try again'*)
    record refused "$tries" "$1"
    echo "the host refused the password" >&2
    exit 3
    ;;
  # An error in sudo's rules, which it reads before it checks a password or after it was right.
  *'syntax error'* | *'parse error'* | *'policy plugin'* | *'not in the sudoers file'* | *'may not run'*) record ;;
esac
# For any other message it is unknown whether the try counts, so the note stays.
printf '%s\n' "$said" >&2
exit 4
