# Makes the rules outlive a boot. $1 the anchor, $2 its file, $3 /etc/pf.conf as macfleet saw it, $4 as
# it is to be, $5 the main ruleset of that, which pfctl checks, $6 the boot job, $7… former anchors of macfleet's.
set -e
anchor=$1 rules=$2 seen=$3 wanted=$4 check=$5 job=$6
shift 6
work=/etc/macfleet/pf
label=dev.macfleet.pf
plist=/Library/LaunchDaemons/$label.plist
mkdir -p /etc/macfleet/pending "$work" /etc/pf.anchors
: >/etc/macfleet/pending/vm_firewall
chmod 0700 "$work"

is() { printf '%s' "$2" | cmp -s - "$1"; }

# The temporary file stands here: launchd reads every file of its own folder.
put() {
  printf '%s' "$2" >"$work/new"
  chmod 0644 "$work/new"
  chown 0:0 "$work/new"
  mv -f "$work/new" "$1"
}

# A person sees the last line alone, so it is the one by which pfctl names a line of the text $2, with
# that line. Where /etc/pf.conf has it, it is somebody else's, and its number there is what helps.
blame() {
  tail -n 4 "$1" >&2
  said=$(grep '^/[^:]*:[0-9][0-9]*: ' "$1" | head -n 1)
  [ -n "$said" ] || said=$(tail -n 1 "$1")
  case $said in "$2":*) ;; *) printf '%s\n' "$said" >&2; return ;; esac
  why=${said#"$2":}
  text=$(head -n "${why%%:*}" "$2" | tail -n 1)
  why=${why#*: }
  at=$(grep -nxF -e "$text" /etc/pf.conf | head -n 1)
  if [ -z "$at" ] || [ "$text" = "anchor \"$anchor\"" ]; then
    printf '%s\n' "$said: $text" >&2
  else
    printf '%s\n' "/etc/pf.conf:${at%%:*}: $why: $text (this line is not macfleet's, so /etc/pf.conf is left alone; pfctl -nf /etc/pf.conf checks it)" >&2
  fi
}

state() {
  code=0
  launchctl print "system/$label" >/dev/null 2>&1 || code=$?
}

file=/etc/pf.anchors/$anchor
is "$file" "$rules" || put "$file" "$rules"
chmod 0644 "$file"
chown 0:0 "$file"

if ! is /etc/pf.conf "$wanted"; then
  if ! is /etc/pf.conf "$seen"; then
    echo "/etc/pf.conf was changed after macfleet had looked at it and is left alone; run macfleet plan again" >&2
    exit 1
  fi
  # A copy is checked. It loads no anchor: on a live host that alone can be "Resource busy".
  printf '%s' "$check" >"$work/check"
  if ! pfctl -nf "$work/check" >"$work/said" 2>&1 && ! grep -qi busy "$work/said"; then
    echo "pfctl refuses what /etc/pf.conf would hold, so it stays as it is; pfctl said:" >&2
    blame "$work/said" "$work/check"
    exit 1
  fi
  put /etc/pf.conf "$wanted"
fi

state
if ! is "$plist" "$job"; then
  put "$plist" "$job"
  if [ "$code" = 0 ]; then
    # A rewritten job counts once it was loaded anew, and its label is free only when print says 113.
    launchctl bootout "system/$label" || :
    tries=0
    state
    while [ "$code" != 113 ]; do
      tries=$((tries + 1))
      [ "$tries" -lt 30 ] || { echo "launchd does not let go of $label" >&2; exit 1; }
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
rm -f "$work/rules" "$work/main" "$work/check" "$work/said" "$work/refused" "$work/token" "$work/new"
rmdir "$work" 2>/dev/null || :
sync
