# Says what speaks against experiments on this Mac. It changes nothing.
[ "$(uname)" = Darwin ] || say refused 'this is no Mac'
[ "$(id -u)" = 0 ] || say refused 'sudo -n gives no root'
[ ! -e /etc/macfleet/host.json ] || say busy 'it has a marker of macfleet: it belongs to a fleet'
if pgrep -f 'tart run ' >/dev/null 2>&1; then
  say busy 'virtual machines run on it'
fi
say macos "$(sw_vers -productVersion)"
