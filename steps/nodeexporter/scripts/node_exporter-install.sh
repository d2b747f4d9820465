# Uses: receipt note put
# Installs the program with a new inode. A flag that the program does not have would end it at each start, so it is tried first.
# $1 archive, $2 its digest, $3 its version, $4 "back" for a rollback, $5… the flags.
set -e
archive=$1 digest=$2 version=$3 way=$4
shift 4
bin=/usr/local/bin
begin node_exporter
mkdir -p "$bin"
rm -rf /usr/local/lib/macfleet/.node_exporter.new.*
got=$(sha "$archive")
if [ "$got" != "$digest" ]; then
  echo "checksum mismatch: $archive has the SHA-256 $got, not $digest; delete it, and the next apply delivers it again" >&2
  exit 1
fi
new=$(mktemp -d /usr/local/lib/macfleet/.node_exporter.new.XXXXXX)
trap 'rm -rf "$new"' EXIT
tar -xzf "$archive" -C "$new"
found=''
for one in "$new"/*/node_exporter; do
  [ ! -f "$one" ] || found=$one
done
if [ -z "$found" ]; then
  echo "$archive has no program node_exporter; use the vendor's archive for darwin-arm64" >&2
  exit 1
fi
chmod 0755 "$found"
chown 0:0 "$found"
if ! codesign -v "$found" 2>/dev/null; then
  codesign --force --sign - "$found"
fi
# --version comes last: when it comes first, the program prints it without reading the other flags.
if ! /bin/sh -c 'exec "$@"' sh "$found" "$@" --version >/dev/null; then
  echo "node_exporter $version does not run with the configured collectors; the running one was kept" >&2
  exit 1
fi
sum=$(sha "$found")
sync
mv -f "$found" "$bin/node_exporter"
rm -f "$receipts/node_exporter.job"
write_receipt node_exporter "$digest" "$version" "$bin/node_exporter" "$sum" "$way"
sync
