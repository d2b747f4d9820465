# Uses: answer receipt put unpacked bundle tart tart_unpack
# Writes anew the note of what the bundle must hold, out of its archive: nothing of the bundle is touched, and what
# runs goes on. A bundle that differs fails it, and is seen by that note from then on. $1 the archive, $2 its digest, $3 the wrapper.
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
  echo "so the bundle of Tart is not what was installed; the next apply installs it again" >&2
  exit 1
fi
