# Uses: answer receipt put unpacked bundle tart tart_unpack
# Rebuilds the manifest of the bundle's files from its archive, without touching the bundle. It fails if the bundle
# differs. $1 archive, $2 its digest, $3 the wrapper.
set -e
archive=$1 digest=$2 wrapper=$3
begin tart
mkdir -p /usr/local/bin
restore
sweep
unpack "$archive" "$digest"
put /usr/local/bin/tart "$wrapper" 0755
note=$receipts/tart.bundle
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
  echo "Tart's bundle was modified after it was installed; the next apply installs it again" >&2
  exit 1
fi
