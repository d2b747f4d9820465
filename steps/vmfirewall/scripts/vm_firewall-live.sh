# Uses: pf work
# Changes the live rules, but no file that is read at boot.
# $1 "on", or "back" to undo an earlier "on". $2 the anchor, $3 its rules (empty: none), $4 the main ruleset
# (empty: keep), $5 macfleet's tables to remove from the main ruleset, $6 where the live main ruleset should
# evaluate the anchor, without a full load: "last", "first" (before everything but macOS's own), "none", or
# empty to keep it. $7 "force" to ignore running virtual machines. $8… replaced anchors: on flushes their rules,
# back loads them from their files.
set -e
way=$1 anchor=$2 rules=$3 main=$4 tables=$5 point=$6 force=$7
shift 7
work=/etc/macfleet/pf
if [ "$way" = on ]; then
  rm -f "$work/begun"
  # A starting virtual machine has no bridge yet, but a process.
  if [ -n "$main" ] && [ "$force" != force ]; then
    busy=$(work)
    case $busy in
      *' run '*)
        printf '%s\n' "$busy" >&2
        echo "virtual machines run: one started after the plan was made, so the main ruleset is not reloaded" >&2
        exit 75
        ;;
    esac
  fi
  mkdir -p /etc/macfleet/pending
  : >/etc/macfleet/pending/vm_firewall
elif [ ! -f "$work/begun" ]; then
  exit 0 # nothing to undo, and a load of the main ruleset has risks
fi
mkdir -p "$work"
chmod 0700 "$work"
: >"$work/begun"
printf '%s' "$rules" >"$work/rules"

failed() {
  echo "$1; pfctl said:" >&2
  blame "$2" "$work/main"
  exit 1
}

# Live tables can make a load fail with "Resource busy": older persistent ones, on some systems
# any. Flush rules and tables, then try once more.
give() {
  pfctl -a "$1" -f "$2" >"$work/said" 2>&1 && return
  grep -qi busy "$work/said" || return 1
  clear "$1"
  pfctl -a "$1" -f "$2" >"$work/said" 2>&1
}

# Other programs, such as fail2ban, own the addresses in the main ruleset's tables. A full load
# may lose them: they are kept in files until they are restored, also if this script is killed.
put_back() {
  [ -d "$work/tables" ] || return 0
  for saved in "$work"/tables/*; do
    [ -s "$saved" ] || continue
    pfctl -t "${saved##*/}" -T add -f "$saved" >"$work/said" 2>&1 ||
      failed "the addresses of the table ${saved##*/} cannot be put back; they are in $saved" "$work/said"
  done
  rm -rf "$work/tables"
}

load_main() {
  rm -rf "$work/tables.new"
  mkdir "$work/tables.new"
  pfctl -s Tables 2>/dev/null | while read -r table; do
    pfctl -t "$table" -T show >"$work/tables.new/$table" 2>/dev/null || :
  done
  mv "$work/tables.new" "$work/tables"
  with_points >"$work/main"
  if ! pfctl -f "$work/main" >"$work/said" 2>&1; then
    grep -qi busy "$work/said" || failed "the main ruleset cannot be loaded; the old one stays" "$work/said"
    for saved in "$work"/tables/*; do
      [ ! -f "$saved" ] || pfctl -t "${saved##*/}" -T kill >/dev/null 2>&1 || :
    done
    if ! pfctl -f "$work/main" >"$work/refused" 2>&1; then
      put_back
      failed "the main ruleset cannot be loaded, without its tables either; the old one stays" "$work/refused"
    fi
  fi
  put_back
}

# points lists the live main ruleset's points of vmnet's anchor.
points() {
  { pfctl -s rules && pfctl -s nat; } 2>/dev/null | grep 'anchor "com\.apple\.internet-sharing"' || :
}

# with_points prints the main ruleset $main with its lines "# live:" replaced by vmnet's points that are live now.
with_points() {
  points >"$work/points"
  printf '%s' "$main" | while IFS= read -r line || [ -n "$line" ]; do
    kept=${line#"# live: "}
    if [ "$kept" = "$line" ] || grep -q "^$kept" "$work/points"; then
      printf '%s\n' "$kept"
    fi
  done
}

# translations lists the NAT rules of virtual machines.
translations() {
  pfctl -s Anchors -v 2>/dev/null | grep 'com\.apple\.internet-sharing' | while read -r name; do
    pfctl -a "$name" -s nat 2>/dev/null || :
  done
}

# guests_before records the network state of running virtual machines, and guests_after fails if a load of the main
# ruleset broke it. Connections to the host would not show that.
guests_before() {
  led='' translated=''
  ifconfig bridge100 >/dev/null 2>&1 || return 0
  led=$(points) translated=$(translations)
}
guests_after() {
  [ -n "$led" ] || return 0
  points >"$work/points"
  printf '%s\n' "$led" | while IFS= read -r line; do
    grep -qxF -e "$line" "$work/points" || exit 1
  done || cut_off "the live main ruleset lost a point of vmnet"
  [ -z "$translated" ] || [ -n "$(translations)" ] || cut_off "pf no longer translates their traffic"
}

# vmnet removes its points and bridge when the last virtual machine ends: that is no failure.
cut_off() {
  sleep 1
  ifconfig bridge100 >/dev/null 2>&1 || return 0
  echo "running virtual machines lost their network: $1; restart them" >&2
  exit 1
}

# set_point adds the anchor's point to the live main ruleset, or removes it. -R replaces only scrub and filter rules:
# translation, which virtual machines need, and tables stay.
set_point() {
  pfctl -s rules >"$work/live" 2>/dev/null
  for dummynet in yes ''; do
    {
      grep '^scrub' "$work/live" || :
      [ -z "$dummynet" ] || pfctl -s dummynet 2>/dev/null || :
      filters
    } >"$work/main"
    ! pfctl -R -f "$work/main" >"$work/said" 2>&1 || return 0
  done
  failed "the live main ruleset does not take the anchor $anchor; the old one stays" "$work/said"
}
filters() {
  ours="anchor \"$anchor\" all" left=$point
  while IFS= read -r line; do
    case $line in
      scrub* | "anchor \"$anchor\"" | "anchor \"$anchor\" "*) continue ;;
      'anchor "com.apple'*) ;;
      *)
        [ "$left" != first ] || printf '%s\n' "$ours"
        [ "$left" != first ] || left=none
        ;;
    esac
    printf '%s\n' "$line"
  done <"$work/live"
  [ "$left" = none ] || printf '%s\n' "$ours"
}

put_back # left by a killed run
for table in $tables; do
  pfctl -t "$table" -T kill >/dev/null 2>&1 || :
done
if [ -z "$rules" ]; then
  clear "$anchor"
elif ! give "$anchor" "$work/rules"; then
  [ "$way" = on ] || clear "$anchor"
  failed "the rules of the anchor $anchor cannot be loaded" "$work/said"
fi
if [ -n "$main$point" ]; then
  guests_before
  if [ -n "$main" ]; then load_main; else set_point; fi
  guests_after
fi
for name in "$@"; do
  if [ "$way" = on ]; then
    clear "$name"
  elif [ -f "/etc/pf.anchors/$name" ]; then
    give "$name" "/etc/pf.anchors/$name" || failed "the rules of the anchor $name cannot be loaded" "$work/said"
  fi
done
if [ "$way" = on ]; then
  if ! held; then
    was=''
    ! enabled || was=yes
    pfctl -E >"$reference" 2>&1 || :
    held || failed "pf gives no reference" "$reference"
    cp "$reference" "$work/token"
    [ -z "$was" ] || : >"$work/enabled"
  fi
  enabled || pfctl -e >"$work/said" 2>&1 || failed "pf cannot be enabled" "$work/said"
elif [ -f "$work/token" ]; then
  # After a reboot the reference has changed.
  if held && cmp -s "$reference" "$work/token"; then
    pfctl -X "$token" >"$work/said" 2>&1 || :
    rm -f "$reference"
    [ ! -f "$work/enabled" ] || enabled || pfctl -e >"$work/said" 2>&1 || :
  fi
  rm -f "$work/token" "$work/enabled"
fi
[ "$way" = on ] || rm -f "$work/begun"
