# write_receipt records what was installed: $1 step, $2 digest and $3 version of the artifact, $4 installed
# file, $5 its digest, $6 "back" for a rollback.
write_receipt() {
  read_receipt "$1"
  if [ "${current%% *}" = "$2" ]; then
    [ "$6" = back ] || rolled=''
  elif [ "$6" = back ]; then
    rolled=$current previous=''
  else
    rolled='' previous=$current
  fi
  rm -f "$receipts/.$1.receipt".*
  slip=$(mktemp "$receipts/.$1.receipt.XXXXXX")
  {
    printf 'current %s %s\nprevious %s\n' "$2" "$3" "${previous:--}"
    [ -z "$rolled" ] || printf 'rolled-back %s\n' "$rolled"
    printf 'file %s %s\ninstalled %s\n' "$(stat -f '%i %z %m' "$4")" "$5" "$(date +%s)"
  } >"$slip"
  chmod 0644 "$slip"
  chown 0:0 "$slip"
  mv -f "$slip" "$receipts/$1.receipt"
}
