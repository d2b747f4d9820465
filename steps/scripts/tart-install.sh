# Uses: receipt note work put unpacked tart tart_unpack
# Installs the bundle: it is unpacked beside the one in use, tried, and takes its place by two renames.
# $1 the archive, $2 its digest, $3 its version, $4 "back" where it is a version from before, $5 the wrapper,
# $6 "force" where it does not wait for work to end.
set -e
archive=$1 digest=$2 version=$3 way=$4 wrapper=$5 force=$6
begin tart
mkdir -p /usr/local/bin
restore
sweep
unpack "$archive" "$digest"

# What counts is that it runs: releases up to 2.31 have no sealed resources, so codesign finds them invalid, and they
# run; 2.33.0 is valid, and macOS kills it.
runs() { /bin/sh -c 'exec "$1" --version' sh "$1"; }
code=0
runs "$new/tart.app/Contents/MacOS/tart" || code=$?
if [ "$code" != 0 ]; then
  if codesign -v "$new/tart.app"; then
    echo "tart $version of $archive does not run: --version ended with exit $code, though its signature is valid; macOS refuses some releases, such as 2.33.0: let the artifact name another version" >&2
  else
    echo "tart $version of $archive does not run: --version ended with exit $code, and its signature is not valid; let the artifact name another file or version" >&2
  fi
  exit 1
fi
# Its entitlements are part of the signature: one that is made anew here would lose them.
if rights=$(codesign -d --entitlements - "$new/tart.app" 2>/dev/null); then
  case $rights in
    *com.apple.security.virtualization*) ;;
    *)
      echo "tart $version of $archive lacks the entitlement com.apple.security.virtualization, so it could run no virtual machine; let the artifact name a release of Tart as it was published" >&2
      exit 1
      ;;
  esac
fi

if [ -d "$bundle" ]; then
  busy=$(work)
  if [ -n "$busy" ] && [ "$force" != force ]; then
    rm -f /etc/macfleet/pending/tart
    printf '%s\n' "$busy" >&2
    echo "tart is not exchanged while it is in use; it has begun since macfleet looked" >&2
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
  echo "tart of $archive does not run in its place; the version from before is back" >&2
  exit 1
fi
put /usr/local/bin/tart "$wrapper" 0755
bundle_note "$bundle" "$digest" "$receipts/tart.bundle" "$bundle"
write_receipt tart "$digest" "$version" "$program" "$(sha "$program")" "$way"
sweep
sync
