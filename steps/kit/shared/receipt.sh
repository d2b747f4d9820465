receipts=/usr/local/lib/macfleet

# read_receipt reads the receipt of the step $1: versions as "DIGEST VERSION", and the stamp of the
# installed file.
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

# sha prints the SHA-256 of a file.
sha() {
  sum=$(shasum -a 256 <"$1") || return
  printf '%s\n' "${sum%% *}"
}
