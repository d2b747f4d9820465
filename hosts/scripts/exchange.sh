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

ask() {
  id=$1 as=$2 count=$3 text=$4
  shift 4
  while [ "$count" -gt 0 ]; do
    take
    set -- "$@" "$value"
    count=$((count - 1))
  done
  printf '\n%s begin %s\n' "$mark" "$id"
  printf '\n%s begin %s\n' "$mark" "$id" >&2
  status=needs-root
  if [ "$as" = user ] && [ "$me" != "$user" ]; then
    if [ "$uid" = 0 ]; then
      perl -e "$watchdog" "$limit" sudo -n -H -u "$user" /bin/sh -c "$prologue$text" sh "$@" </dev/null
      status=$?
    fi
  elif [ "$as" = user ] || [ "$uid" = 0 ]; then
    perl -e "$watchdog" "$limit" /bin/sh -c "$prologue$text" sh "$@" </dev/null
    status=$?
  fi
  printf '\n%s end %s\n' "$mark" "$status"
  printf '\n%s end %s\n' "$mark" "$status" >&2
}

printf '\n%s host %s\n' "$mark" "$uid"
