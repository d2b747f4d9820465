# Prints what prevents experiments on this Mac. It changes nothing.
[ "$(uname)" = Darwin ] || say refused 'this is not a Mac'
[ "$(id -u)" = 0 ] || say refused 'passwordless sudo does not work'
[ ! -e /etc/macfleet/host.json ] || say busy 'the Mac has a marker of macfleet: it belongs to a fleet'
if pgrep -f 'tart run ' >/dev/null 2>&1; then
  say busy 'virtual machines are running'
fi
say macos "$(sw_vers -productVersion)"
