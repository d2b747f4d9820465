# Uses: receipt note put service job
# Installs the program under a new inode: the kernel keeps what it knows of a signature with the inode, and
# kills a program whose bytes were replaced in place.
# $1 the artifact, $2 its digest, $3 its version, $4 "back" where it is a version from before,
# $5 "anew" where the file is right and is to get another inode.
set -e
artifact=$1 digest=$2 version=$3 way=$4 force=$5
bin=/usr/local/bin
program=$bin/tart-kubelet
begin tart_kubelet
mkdir -p "$bin"
rm -f "$bin"/.tart-kubelet.*

read_receipt tart_kubelet
if [ "$force" != anew ] && [ -f "$program" ]; then
  got=$(sha "$program")
  # The right bytes are there: an earlier run was killed before it could note them, or another tool brought them.
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
  echo "$artifact has the SHA-256 $got, not $digest; remove it, and the next apply brings it again" >&2
  exit 1
fi
chmod 0755 "$new"
chown 0:0 "$new"
# Another signature is another program to macOS's permissions, so it is made only where there is none.
if ! codesign -v "$new" 2>/dev/null; then
  codesign --force --sign - "$new"
  got=$(sha "$new")
fi
forget_program tart_kubelet "$program"
sync
mv -f "$new" "$program"
write_receipt tart_kubelet "$digest" "$version" "$program" "$got" "$way"
sync
