# Uses: pf
# Changes the rules that are live, and no file that a boot reads.
# $1 "on", or "back", which takes back what an earlier "on" did. $2 the anchor, $3 its rules (empty: none),
# $4 the main ruleset (empty: it stays), $5 tables of ours that have no business in the main ruleset,
# $6… anchors that are given up: on takes their rules away, back loads those of their files.
set -e
way=$1 anchor=$2 rules=$3 main=$4 tables=$5
shift 5
work=/etc/macfleet/pf
if [ "$way" = on ]; then
  mkdir -p /etc/macfleet/pending
  : >/etc/macfleet/pending/vm_firewall
fi
mkdir -p "$work"
chmod 0700 "$work"
printf '%s' "$rules" >"$work/rules"
printf '%s' "$main" >"$work/main"

failed() {
  echo "$1; pfctl said:" >&2
  blame "$2" "$work/main"
  exit 1
}

# Tables that are alive make a load "Resource busy": older persistent ones, on some systems any.
# Without rules and tables there is nothing to be busy with, so the load is tried once more.
give() {
  pfctl -a "$1" -f "$2" >"$work/said" 2>&1 && return
  grep -qi busy "$work/said" || return 1
  clear "$1"
  pfctl -a "$1" -f "$2" >"$work/said" 2>&1
}

# The addresses in the tables of the main ruleset are other programs', such as fail2ban's. A full
# load may lose them: they are kept in files until they are back, also when this script is killed.
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

put_back # of a run that was killed
for table in $tables; do
  pfctl -t "$table" -T kill >/dev/null 2>&1 || :
done
if [ -z "$rules" ]; then
  clear "$anchor"
elif ! give "$anchor" "$work/rules"; then
  [ "$way" = on ] || clear "$anchor"
  failed "the rules of the anchor $anchor cannot be loaded" "$work/said"
fi
[ -z "$main" ] || load_main
for name in "$@"; do
  if [ "$way" = on ]; then
    clear "$name"
  elif [ -f "/etc/pf.anchors/$name" ]; then
    give "$name" "/etc/pf.anchors/$name" || failed "the rules of the anchor $name cannot be loaded" "$work/said"
  fi
done
if [ "$way" = on ]; then
  # Each pfctl -E adds a reference, so it is called where pf is off alone; the token gives it back.
  pfctl -s info 2>/dev/null | grep -q '^Status: Enabled' ||
    pfctl -E >"$work/token" 2>&1 || failed "pf cannot be enabled" "$work/token"
elif [ -f "$work/token" ]; then
  while read -r word _ token _; do
    [ "$word" != Token ] || pfctl -X "$token" >/dev/null 2>&1 || :
  done <"$work/token"
  rm -f "$work/token"
fi
