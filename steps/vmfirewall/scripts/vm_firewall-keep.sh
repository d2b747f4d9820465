# Uses: pf
# Makes the rules survive a reboot. $1 the anchor, $2 its file, $3 /etc/pf.conf as macfleet saw it, $4 its new
# content, $5 the main ruleset of that, which pfctl checks, $6 the boot job, $7… former anchors of macfleet's.
set -e
anchor=$1 rules=$2 seen=$3 wanted=$4 check=$5 job=$6
shift 6
work=/etc/macfleet/pf
label=dev.macfleet.pf
plist=/Library/LaunchDaemons/$label.plist
mkdir -p /etc/macfleet/pending "$work" /etc/pf.anchors
: >/etc/macfleet/pending/vm_firewall
chmod 0700 "$work"

state() {
  code=0
  launchctl print "system/$label" >/dev/null 2>&1 || code=$?
}

file=/etc/pf.anchors/$anchor
is "$file" "$rules" || put "$file" "$rules"
chmod 0644 "$file"
chown 0:0 "$file"

# Keep the original file: it shows which of macOS's own lines belong there.
[ -f /etc/macfleet/pf.conf.first ] || put /etc/macfleet/pf.conf.first "$seen"
rewrite "$seen" "$wanted" "$check"

state
if ! is "$plist" "$job"; then
  put "$plist" "$job"
  if [ "$code" = 0 ]; then
    # A rewritten job must be reloaded; its label is free once print exits with 113.
    launchctl bootout "system/$label" || :
    tries=0
    state
    while [ "$code" != 113 ]; do
      tries=$((tries + 1))
      [ "$tries" -lt 30 ] || { echo "launchd does not unload $label" >&2; exit 1; }
      sleep 1
      state
    done
  fi
fi
chmod 0644 "$plist"
chown 0:0 "$plist"
if [ "$code" != 0 ]; then
  launchctl enable "system/$label"
  launchctl bootstrap system "$plist"
fi

for name in "$@"; do
  rm -f "/etc/pf.anchors/$name"
done
rm -f "$work/begun" "$work/rules" "$work/main" "$work/check" "$work/said" "$work/refused" "$work/token" "$work/enabled" "$work/new" "$work/live" "$work/points"
rmdir "$work" 2>/dev/null || :
sync
