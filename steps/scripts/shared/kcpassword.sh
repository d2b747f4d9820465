# bytes prints a file's bytes, also of one that is hexadecimal text.
bytes() {
  rest=$(tr -d '0-9A-Fa-f\r\n' <"$1" | od -An -v -tx1)
  if [ -n "$rest" ]; then
    od -An -v -tx1 <"$1"
    return
  fi
  digits=$(tr -d '\r\n' <"$1")
  while [ -n "${digits#?}" ]; do
    rest=${digits#??}
    pair=${digits%"$rest"}
    printf '%s ' "$pair"
    digits=$rest
  done | tr A-F a-f
}

# walk reads a file's bytes into seen, up to the one that equals its key byte and so
# ends the password. It fails when there is none.
walk() {
  key='7d 89 52 23 d2 bc dd ea a3 b9 1f' seen=
  for byte in $(bytes "$1"); do
    seen="$seen $byte"
    [ "$byte" != "${key%% *}" ] || return 0
    key="${key#* } ${key%% *}"
  done
  return 1
}
