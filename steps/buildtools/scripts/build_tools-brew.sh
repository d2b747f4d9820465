# Uses: put receipt
# Installs Homebrew without prompts. Its installer selects the command line tools, even with Xcode there, so Xcode is selected again.
# $1 the installer, $2 its digest, $3 the login user, $4 Xcode's bundle or nothing.
set -e
begin build_tools
got=$(sha "$1")
if [ "$got" != "$2" ]; then
  echo "checksum mismatch: $1 has the SHA-256 $got, not $2; delete it, and the next apply delivers it again" >&2
  exit 1
fi
selected=$(xcode-select -p 2>/dev/null) || selected=''
[ -z "$4" ] || selected=$4/Contents/Developer
text=$(cat "$1")
cd /
code=0
sudo -H -u "$3" /bin/sh -c 'export NONINTERACTIVE=1; exec /bin/bash -c "$1"' sh "$text" </dev/null || code=$?
[ -z "$selected" ] || xcode-select -s "$selected"
if [ "$code" != 0 ] || [ ! -x /opt/homebrew/bin/brew ]; then
  echo "Homebrew's installer failed: exit code $code; what it said is above" >&2
  exit 1
fi
sync
