# Uses: receipt note work put unpacked
# Installs the bundle: it is unpacked beside the one in use, looked at, and takes its place by two renames.
# $1 the archive, $2 its digest, $3 its version, $4 "back" where it is a version from before, $5 the wrapper,
# $6 "force" where it does not wait for work to end.
set -e
archive=$1 digest=$2 version=$3 way=$4 wrapper=$5 force=$6
lib=/usr/local/lib
bundle=$lib/tart.app old=$lib/.tart.old
program=$bundle/Contents/MacOS/tart
begin tart
mkdir -p /usr/local/bin
# A run that was killed between the two renames left no bundle in its place.
if [ ! -d "$bundle" ] && [ -d "$old" ]; then mv "$old" "$bundle"; fi
rm -rf "$old" "$lib"/.tart.new.*

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
# Its entitlements are part of the signature: one that is made anew here would lose them.
if ! codesign -v "$new/tart.app"; then
  echo "the signature of tart.app in $archive is not valid" >&2
  exit 1
fi
runs() { /bin/sh -c 'exec "$1" --version' sh "$1"; }
if ! runs "$new/tart.app/Contents/MacOS/tart"; then
  echo "tart of $archive does not run" >&2
  exit 1
fi

if [ -d "$bundle" ]; then
  busy=$(work)
  if [ -n "$busy" ] && [ "$force" != force ]; then
    rm -f /etc/macfleet/pending/tart
    printf '%s\n' "$busy" >&2
    echo "tart is not exchanged while it is in use; it has begun since macfleet looked" >&2
    exit 75
  fi
  mv "$bundle" "$old"
fi
if ! mv "$new/tart.app" "$bundle" || ! runs "$program"; then
  rm -rf "$bundle"
  [ ! -d "$old" ] || mv "$old" "$bundle"
  echo "tart of $archive does not run in its place; the version from before is back" >&2
  exit 1
fi
put /usr/local/bin/tart "$wrapper" 0755
bundle_note "$bundle" "$digest" "$receipts/tart.bundle" "$bundle"
write_receipt tart "$digest" "$version" "$program" "$(sha "$program")" "$way"
rm -rf "$old"
sync
