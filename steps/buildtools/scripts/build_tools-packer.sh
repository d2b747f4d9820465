# Uses: receipt note put
# Installs packer with a new inode. A running one keeps its own.
# $1 archive, $2 its digest, $3 its version, $4 "back" for a rollback.
set -e
archive=$1 digest=$2 version=$3 way=$4
begin build_tools
mkdir -p /usr/local/bin
rm -rf /usr/local/lib/macfleet/.packer.new.*
got=$(sha "$archive")
if [ "$got" != "$digest" ]; then
  echo "checksum mismatch: $archive has the SHA-256 $got, not $digest; delete it, and the next apply delivers it again" >&2
  exit 1
fi
new=$(mktemp -d /usr/local/lib/macfleet/.packer.new.XXXXXX)
trap 'rm -rf "$new"' EXIT
unzip -q "$archive" -d "$new"
if [ ! -f "$new/packer" ]; then
  echo "$archive has no program packer at its top; use the vendor's archive for darwin-arm64" >&2
  exit 1
fi
chmod 0755 "$new/packer"
chown 0:0 "$new/packer"
# The vendor's signature stays: macOS knows the program by it.
if ! codesign -v "$new/packer"; then
  echo "the signature of packer in $archive is damaged; use the vendor's archive" >&2
  exit 1
fi
if ! /bin/sh -c 'exec "$1" version' sh "$new/packer" >/dev/null; then
  echo "packer of $archive does not run on this host; use another version" >&2
  exit 1
fi
sum=$(sha "$new/packer")
sync
mv -f "$new/packer" /usr/local/bin/packer
write_receipt build_tools "$digest" "$version" /usr/local/bin/packer "$sum" "$way"
sync
