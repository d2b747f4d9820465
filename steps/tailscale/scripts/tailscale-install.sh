# Uses: receipt note put daemon
# Installs both programs with new inodes, and keeps the former ones until the new daemon answers.
# $1 archive, $2 its digest, $3 its version, $4 "back" for a rollback.
set -e
archive=$1 digest=$2 version=$3 way=$4
begin tailscale
mkdir -p "$bin"
rm -rf /usr/local/lib/macfleet/.tailscale.new.*
got=$(sha "$archive")
if [ "$got" != "$digest" ]; then
  echo "checksum mismatch: $archive has the SHA-256 $got, not $digest; delete it, and the next apply delivers it again" >&2
  exit 1
fi
new=$(mktemp -d /usr/local/lib/macfleet/.tailscale.new.XXXXXX)
trap 'rm -rf "$new"' EXIT
tar -xzf "$archive" -C "$new"
for one in tailscale tailscaled; do
  if [ ! -f "$new/$one" ]; then
    echo "$archive has no program $one at its top; make it with: macfleet artifacts build tailscale@$version" >&2
    exit 1
  fi
  chmod 0755 "$new/$one"
  chown 0:0 "$new/$one"
  if ! codesign -v "$new/$one" 2>/dev/null; then
    codesign --force --sign - "$new/$one"
  fi
done
if ! /bin/sh -c 'exec "$1" version' sh "$new/tailscale" >/dev/null || ! /bin/sh -c 'exec "$1" --version' sh "$new/tailscaled" >/dev/null; then
  echo "the programs of $archive do not run on this host; use another file or version" >&2
  exit 1
fi
# An interrupted roll has kept the programs that worked last: they are not overwritten.
if [ ! -d "$former" ] && [ -f "$bin/tailscaled" ] && [ -f "$receipts/tailscale.receipt" ]; then
  rm -rf "$former.new"
  mkdir "$former.new"
  cp -p "$bin/tailscale" "$bin/tailscaled" "$former.new"
  cp -p "$receipts/tailscale.receipt" "$receipts/tailscale_client.receipt" "$former.new"
  [ ! -f "$list" ] || cp -p "$list" "$former.new/plist"
  mv "$former.new" "$former"
fi
daemon_sum=$(sha "$new/tailscaled") client_sum=$(sha "$new/tailscale")
sync
mv -f "$new/tailscale" "$bin/tailscale"
mv -f "$new/tailscaled" "$bin/tailscaled"
rm -f "$receipts/tailscale.job"
write_receipt tailscale_client "$digest" "$version" "$bin/tailscale" "$client_sum" "$way"
write_receipt tailscale "$digest" "$version" "$bin/tailscaled" "$daemon_sum" "$way"
sync
