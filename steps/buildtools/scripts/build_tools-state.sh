# Uses: answer receipt
# Prints what the step needs. $1 Xcode's bundle or nothing, $2 the folder for caches or nothing, $3 "traces": stop early on a host
# where macfleet left nothing.
if [ "$3" = traces ] && [ ! -e "$receipts/build_tools.receipt" ] && [ ! -e /etc/macfleet/pending/build_tools ]; then
  say end
  exit
fi
packer=/usr/local/bin/packer
survey "$receipts/build_tools.receipt" "$packer" /etc/zshenv "$2"
show_receipt build_tools
if [ -f "$packer" ]; then
  about "$packer"
  printf 'stamp %s\n' "$stamp"
  read_receipt build_tools
  case $installed in "$stamp "*) ;; *) printf 'sha %s\n' "$(sha "$packer")" ;; esac
  say "packer 0"
fi
file /etc/zshenv
if [ -n "$2" ] && [ -d "$2" ]; then
  about "$2"
  say "cache 0 $named"
fi
if [ -n "$1" ] && [ -d "$1/Contents/Developer" ]; then
  say "xcode 0"
  code=0
  DEVELOPER_DIR=$1/Contents/Developer xcodebuild -license check >/dev/null 2>&1 || code=$?
  say "licence $code"
fi
if [ -n "$1" ]; then
  code=0
  xcode-select -p 2>/dev/null || code=$?
  say "selected $code"
fi
kept
room
say end
