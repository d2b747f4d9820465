# put replaces the file $1 with the text $2 and the mode $3. The temporary file is elsewhere, because launchd
# reads every file in its folders.
put() {
  rm -f /usr/local/lib/macfleet/.put.*
  fresh=$(mktemp /usr/local/lib/macfleet/.put.XXXXXX)
  printf '%s' "$2" >"$fresh"
  chmod "$3" "$fresh"
  chown 0:0 "$fresh"
  mv -f "$fresh" "$1"
}

# begin marks the step $1 as in progress and creates macfleet's folder.
begin() {
  mkdir -p /etc/macfleet/pending /usr/local/lib/macfleet
  chmod 0755 /usr/local/lib/macfleet
  chown 0:0 /usr/local/lib/macfleet
  : >"/etc/macfleet/pending/$1"
}
