# unpack verifies the digest $2 of the archive $1 and unpacks it into the new folder $new.
unpack() {
  got=$(sha "$1")
  if [ "$got" != "$2" ]; then
    echo "checksum mismatch: $1 has the SHA-256 $got, not $2; delete it, and the next apply delivers it again" >&2
    exit 1
  fi
  new=$(mktemp -d "$lib/.tart.new.XXXXXX")
  trap 'rm -rf "$new" 2>/dev/null || :' EXIT
  tar -xzf "$1" -C "$new"
  chown -R 0:0 "$new"
  if [ ! -f "$new/tart.app/Contents/MacOS/tart" ]; then
    echo "$1 is not an archive of Tart's bundle: it has no tart.app/Contents/MacOS/tart" >&2
    exit 1
  fi
}
