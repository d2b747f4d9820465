# Uses: receipt note work put unpacked tart tart_unpack
# Installs the bundle: unpacks it next to the current one, tries it, and swaps the two with two renames.
# $1 archive, $2 its digest, $3 its version, $4 "back" for a rollback, $5 the wrapper, $6 "force" to ignore
# running work.
set -e
archive=$1 digest=$2 version=$3 way=$4 wrapper=$5 force=$6
begin tart
mkdir -p /usr/local/bin
restore
sweep
unpack "$archive" "$digest"

# The test is whether it runs, not its signature: codesign rejects releases up to 2.31 (no sealed resources), but they
# run; 2.33.0 is valid, but macOS kills it.
runs() { /bin/sh -c 'exec "$1" --version' sh "$1"; }
code=0
runs "$new/tart.app/Contents/MacOS/tart" || code=$?
if [ "$code" != 0 ]; then
  if codesign -v "$new/tart.app"; then
    echo "tart $version of $archive does not run: --version failed with exit code $code, though its signature is valid; macOS rejects some releases, such as 2.33.0: use another version" >&2
  else
    echo "tart $version of $archive does not run: --version failed with exit code $code, and its signature is invalid; use another file or version" >&2
  fi
  exit 1
fi
# Do not sign the program again: entitlements are part of the signature.
if rights=$(codesign -d --entitlements - "$new/tart.app" 2>/dev/null); then
  case $rights in
    *com.apple.security.virtualization*) ;;
    *)
      echo "tart $version of $archive lacks the entitlement com.apple.security.virtualization and cannot run virtual machines; use an official release of Tart" >&2
      exit 1
      ;;
  esac
fi

if [ -d "$bundle" ]; then
  busy=$(work)
  if [ -n "$busy" ] && [ "$force" != force ]; then
    rm -f /etc/macfleet/pending/tart
    printf '%s\n' "$busy" >&2
    echo "tart is in use: work started after the plan was made" >&2
    exit 75
  fi
fi
aside=$(mktemp -d "$lib/.tart.old.XXXXXX")
if [ -e "$bundle" ] || [ -h "$bundle" ]; then mv "$bundle" "$aside/tart.app" || protected move; fi
moved=yes
mv "$new/tart.app" "$bundle" || moved=''
if [ -z "$moved" ] || ! runs "$program"; then
  [ ! -e "$bundle" ] || mv "$bundle" "$aside/failed.app"
  [ ! -e "$aside/tart.app" ] || mv "$aside/tart.app" "$bundle"
  sweep
  [ -n "$moved" ] || protected replace
  echo "tart of $archive does not run after the installation; the previous version was restored" >&2
  exit 1
fi
put /usr/local/bin/tart "$wrapper" 0755
bundle_note "$bundle" "$digest" "$receipts/tart.bundle" "$bundle"
write_receipt tart "$digest" "$version" "$program" "$(sha "$program")" "$way"
sweep
sync
