# Uses: pf
# Removes what macfleet set up: rules and tables, lines in /etc/pf.conf, and last the anchor files and the
# boot job, which mark it as macfleet's.
# $1 /etc/pf.conf as macfleet saw it, $2 its new content, $3 the main ruleset of that, $4… the anchors.
set -e
seen=$1 wanted=$2 check=$3
shift 3
work=/etc/macfleet/pf
label=dev.macfleet.pf
mkdir -p /etc/macfleet/pending "$work"
: >/etc/macfleet/pending/vm_firewall
chmod 0700 "$work"

if launchctl print "system/$label" >/dev/null 2>&1; then
  launchctl bootout "system/$label"
fi

for name in "$@"; do
  clear "$name"
done

if held; then
  give_back "$token" "$@"
fi
rm -f "$reference"

rewrite "$seen" "$wanted" "$check"

for name in "$@"; do
  rm -f "/etc/pf.anchors/$name"
done
rm -f "/Library/LaunchDaemons/$label.plist"
rm -rf "$work" /etc/macfleet/pf.conf.first
sync
