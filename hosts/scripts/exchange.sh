read -r mark && read -r user && read -r limit || exit 91
uid=$(id -u)
me=$(id -un)

take() {
  read -r length || exit 91
  value=
  if [ "$length" -gt 0 ]; then
    value=$(dd bs=1 count="$length" 2>/dev/null; printf x)
    value=${value%x}
  fi
}

# within runs a command under the watchdog.
within() {
  if [ "$piped" = 1 ]; then
    printf '%s' "$input" | perl -e "$watchdog" "$limit" "$@"
  else
    perl -e "$watchdog" "$limit" "$@" </dev/null
  fi
}

# The input reaches a script through a pipe from a builtin: it must stand on no
# command line.
ask() {
  id=$1 as=$2 count=$3 piped=$4 text=$5
  shift 5
  while [ "$count" -gt 0 ]; do
    take
    set -- "$@" "$value"
    count=$((count - 1))
  done
  input=
  if [ "$piped" = 1 ]; then
    take
    input=$value value=
  fi
  printf '\n%s begin %s\n' "$mark" "$id"
  printf '\n%s begin %s\n' "$mark" "$id" >&2
  status=needs-root
  if [ "$as" = user ] && [ "$me" != "$user" ]; then
    if [ "$uid" = 0 ]; then
      within sudo -n -H -u "$user" /bin/sh -c "$prologue$text" sh "$@"
      status=$?
    fi
  elif [ "$as" = user ] || [ "$uid" = 0 ]; then
    within /bin/sh -c "$prologue$text" sh "$@"
    status=$?
  fi
  printf '\n%s end %s\n' "$mark" "$status"
  printf '\n%s end %s\n' "$mark" "$status" >&2
}

printf '\n%s host %s\n' "$mark" "$uid"
