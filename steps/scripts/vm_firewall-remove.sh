# Takes away what macfleet made: the boot job, the rules and tables, the lines in /etc/pf.conf, and last
# the files, which say that it was macfleet. pf stays enabled.
# $1 /etc/pf.conf as macfleet saw it, $2 as it is to be, $3 the main ruleset of that, $4… the anchors.
set -e
seen=$1 wanted=$2 check=$3
shift 3
work=/etc/macfleet/pf
label=dev.macfleet.pf
mkdir -p /etc/macfleet/pending "$work"
: >/etc/macfleet/pending/vm_firewall
chmod 0700 "$work"

is() { printf '%s' "$2" | cmp -s - "$1"; }

if launchctl print "system/$label" >/dev/null 2>&1; then
  launchctl bootout "system/$label"
fi
rm -f "/Library/LaunchDaemons/$label.plist"

for name in "$@"; do
  pfctl -a "$name" -F rules >/dev/null 2>&1 || :
  pfctl -a "$name" -s Tables 2>/dev/null | while read -r table; do
    pfctl -a "$name" -t "$table" -T kill >/dev/null 2>&1 || :
  done
done

if ! is /etc/pf.conf "$wanted"; then
  if ! is /etc/pf.conf "$seen"; then
    echo "/etc/pf.conf was changed after macfleet had looked at it and is left alone; run macfleet plan again" >&2
    exit 1
  fi
  printf '%s' "$check" >"$work/check"
  if ! pfctl -nf "$work/check" >"$work/said" 2>&1 && ! grep -qi busy "$work/said"; then
    echo "pfctl refuses what /etc/pf.conf would hold, so it stays as it is; pfctl said:" >&2
    tail -n 4 "$work/said" >&2
    exit 1
  fi
  printf '%s' "$wanted" >"$work/new"
  chmod 0644 "$work/new"
  chown 0:0 "$work/new"
  mv -f "$work/new" /etc/pf.conf
fi

for name in "$@"; do
  rm -f "/etc/pf.anchors/$name"
done
rm -rf "$work"
sync
