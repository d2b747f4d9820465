# Tries a password once. $1 is the time of day in seconds since 1970, for the
# record, $2 what the host was known to remember of earlier tries; the input is
# the password and what it is known by, a line each.
# A wrong try counts against the account, and a locked account is a host that
# nobody can help any more: the try is written down before it is made, so that a
# run which dies here can't make it again and again.
set -e
IFS= read -r password
IFS= read -r seal
dir=$HOME/.macfleet
mkdir -p "$dir"
chmod 0700 "$dir"

# One try at a time, by whatever run: a password that two try at once is tried
# twice. A run that died leaves its lock, which counts for a bit more than a script may take.
# The lock says since when it is held from the moment it is there.
own=$(mktemp "$dir/.try.XXXXXX")
trap 'rm -f "$own"' EXIT
date +%s >"$own"
if ! ln "$own" "$dir/trying" 2>/dev/null; then
  since=$(cat "$dir/trying" 2>/dev/null || date +%s)
  case $since in '' | *[!0-9]*) since=0 ;; esac
  # A clock that was set back must not put that off for ever.
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
# Another run's try may have changed what a line says, and not how many there are.
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

# record replaces what is known of this password by its arguments, or drops it.
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
# Where sudo -v asks for no password, its answer says nothing about one.
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
  # About its own rules, which it reads before it looks at a password or after it was right.
  *'syntax error'* | *'parse error'* | *'policy plugin'* | *'not in the sudoers file'* | *'may not run'*) record ;;
esac
# Of any other words nobody knows whether the try counts, so the note stays.
printf '%s\n' "$said" >&2
exit 4
