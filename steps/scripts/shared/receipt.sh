receipts=/usr/local/lib/macfleet

# read_receipt sets what the receipt of the step $1 says: versions as "DIGEST VERSION", and by what the
# installed file is known again.
read_receipt() {
  current='' previous='' rolled='' installed=''
  [ -f "$receipts/$1.receipt" ] || return 0
  while read -r word rest; do
    case $word in
      current) current=$rest ;;
      previous) [ "$rest" = - ] || previous=$rest ;;
      rolled-back) rolled=$rest ;;
      file) installed=$rest ;;
    esac
  done <"$receipts/$1.receipt"
}

# stamp prints by what a file is known again without reading it all.
stamp() { stat -f '%i %z %m' "$1"; }

# sha prints the digest of a file.
sha() {
  sum=$(shasum -a 256 <"$1") || return
  printf '%s\n' "${sum%% *}"
}

# write_receipt notes what was installed: $1 the step, $2 the digest and $3 the version of the artifact,
# $4 the installed file, $5 its digest, $6 "back" where it is a version from before that came back.
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
    printf 'file %s %s\ninstalled %s\n' "$(stamp "$4")" "$5" "$(date +%s)"
  } >"$slip"
  chmod 0644 "$slip"
  chown 0:0 "$slip"
  mv -f "$slip" "$receipts/$1.receipt"
}
