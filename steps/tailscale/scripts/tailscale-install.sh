# Uses: receipt note put daemon former
# Installs the programs with new inodes, and keeps the former ones until the new daemon answers.
# $1 archive, $2 its digest, $3 its version, $4 "back" for a rollback, $5 "client" to replace only the client.
set -e
archive=$1 digest=$2 version=$3 way=$4 only=$5
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
[ "$only" = client ] || keep_former
daemon_sum=$(sha "$new/tailscaled") client_sum=$(sha "$new/tailscale")
sync
mv -f "$new/tailscale" "$bin/tailscale"
if [ "$only" != client ]; then
  rm -f "$receipts/tailscale.job" # the daemon has to be started again
  mv -f "$new/tailscaled" "$bin/tailscaled"
fi
write_receipt tailscale_client "$digest" "$version" "$bin/tailscale" "$client_sum" "$way"
[ "$only" = client ] || write_receipt tailscale "$digest" "$version" "$bin/tailscaled" "$daemon_sum" "$way"
sync
