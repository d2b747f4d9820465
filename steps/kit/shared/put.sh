# put replaces the file $1 by the text $2, with the mode $3. The temporary file stands where nobody reads
# a folder: launchd reads every file of its own ones.
put() {
  rm -f /usr/local/lib/macfleet/.put.*
  fresh=$(mktemp /usr/local/lib/macfleet/.put.XXXXXX)
  printf '%s' "$2" >"$fresh"
  chmod "$3" "$fresh"
  chown 0:0 "$fresh"
  mv -f "$fresh" "$1"
}

# begin notes that the step $1 is at work, and makes macfleet's own folder.
begin() {
  mkdir -p /etc/macfleet/pending /usr/local/lib/macfleet
  chmod 0755 /usr/local/lib/macfleet
  chown 0:0 /usr/local/lib/macfleet
  : >"/etc/macfleet/pending/$1"
}
