# unpack checks that the archive $1 has the digest $2, and unpacks it into the new folder $new.
unpack() {
  got=$(sha "$1")
  if [ "$got" != "$2" ]; then
    echo "$1 has the SHA-256 $got, not $2; remove it, and the next apply brings it again" >&2
    exit 1
  fi
  new=$(mktemp -d "$lib/.tart.new.XXXXXX")
  trap 'rm -rf "$new" 2>/dev/null || :' EXIT
  tar -xzf "$1" -C "$new"
  chown -R 0:0 "$new"
  if [ ! -f "$new/tart.app/Contents/MacOS/tart" ]; then
    echo "$1 holds no tart.app/Contents/MacOS/tart, so it is no archive of Tart's bundle" >&2
    exit 1
  fi
}
