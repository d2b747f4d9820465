# Takes away what macfleet made: the rules and tables, the lines in /etc/pf.conf, and last the files and
# the boot job's, which say that it was macfleet. pf stays enabled.
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
  if [ -z "$at" ]; then
    printf '%s\n' "$said: $text" >&2
  else
    printf '%s\n' "/etc/pf.conf:${at%%:*}: $why: $text (this line is not macfleet's, so /etc/pf.conf is left alone; pfctl -nf /etc/pf.conf checks it)" >&2
  fi
}

if launchctl print "system/$label" >/dev/null 2>&1; then
  launchctl bootout "system/$label"
fi

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
    blame "$work/said" "$work/check"
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
rm -f "/Library/LaunchDaemons/$label.plist"
rm -rf "$work"
sync
