# Uses: answer receipt put unpacked bundle
# Writes anew the note of what the bundle must hold, out of its archive: nothing of the bundle is touched, and what
# runs goes on. A bundle that differs fails it, and is seen by that note from then on. $1 the archive, $2 its digest, $3 the wrapper.
set -e
archive=$1 digest=$2 wrapper=$3
lib=/usr/local/lib
begin tart
mkdir -p /usr/local/bin
rm -rf "$lib/.tart.old" "$lib"/.tart.new.*
got=$(sha "$archive")
if [ "$got" != "$digest" ]; then
  echo "$archive has the SHA-256 $got, not $digest; remove it, and the next apply brings it again" >&2
  exit 1
fi
new=$(mktemp -d "$lib/.tart.new.XXXXXX")
trap 'rm -rf "$new"' EXIT
tar -xzf "$archive" -C "$new"
chown -R 0:0 "$new"
if [ ! -f "$new/tart.app/Contents/MacOS/tart" ]; then
  echo "$archive holds no tart.app/Contents/MacOS/tart, so it is no archive of Tart's bundle" >&2
  exit 1
fi
put /usr/local/bin/tart "$wrapper" 0755
note=$receipts/tart.bundle bundle=$lib/tart.app
bundle_note "$new/tart.app" "$digest" "$note" "$bundle"
sync
set --
while read -r _ _ _ _ _ _ path; do
  [ -z "$path" ] || set -- "$@" "$bundle/$path"
done <"$note"
survey "$@"
differs=$(bundle_differs "$bundle" "$note")
if [ -n "$differs" ]; then
  printf '%s\n' "$differs" >&2
  echo "so the bundle of Tart is not what was installed; the next apply installs it again" >&2
  exit 1
fi
