# Uses: receipt note put service job
# Installs the program with a new inode: the kernel caches signatures by inode and kills a program whose
# bytes were replaced in place.
# $1 artifact, $2 its digest, $3 its version, $4 "back" for a rollback, $5 "again" to give an unchanged file
# a new inode.
set -e
artifact=$1 digest=$2 version=$3 way=$4 force=$5
bin=/usr/local/bin
program=$bin/tart-kubelet
begin tart_kubelet
mkdir -p "$bin"
rm -f "$bin"/.tart-kubelet.*

read_receipt tart_kubelet
if [ "$force" != again ] && [ -f "$program" ]; then
  got=$(sha "$program")
  # The bytes are right: an earlier run was killed before it recorded them, or another tool installed them.
  if [ "$got" = "$digest" ] || [ "${current%% *}/${installed##* }" = "$digest/$got" ]; then
    chmod 0755 "$program"
    chown 0:0 "$program"
    write_receipt tart_kubelet "$digest" "$version" "$program" "$got" "$way"
    exit 0
  fi
fi
new=$(mktemp "$bin/.tart-kubelet.XXXXXX")
trap 'rm -f "$new"' EXIT
cp "$artifact" "$new"
got=$(sha "$new")
if [ "$got" != "$digest" ]; then
  echo "checksum mismatch: $artifact has the SHA-256 $got, not $digest; delete it, and the next apply delivers it again" >&2
  exit 1
fi
chmod 0755 "$new"
chown 0:0 "$new"
# Sign only an unsigned program: for macOS's permissions, a new signature is a new program.
if ! codesign -v "$new" 2>/dev/null; then
  codesign --force --sign - "$new"
  got=$(sha "$new")
fi
forget_program tart_kubelet "$program"
sync
mv -f "$new" "$program"
write_receipt tart_kubelet "$digest" "$version" "$program" "$got" "$way"
sync
