# Uses: answer work
# Prints the state that the step needs. Each tool's output is followed by a line with its name, exit code and
# subject. pfctl's messages on stderr are ignored. $1 "traces": stop early on a host where macfleet left nothing.
anchor() {
  case $1 in '' | com.apple* | '*') return ;; esac
  pfctl -a "$1" -s rules 2>/dev/null
  say "live rules $? $1"
  pfctl -a "$1" -t vm_sources -T show 2>/dev/null
  say "live vm_sources $? $1"
  pfctl -a "$1" -t blocked_dst -T show 2>/dev/null
  say "live blocked_dst $? $1"
}

# traces looks for what macfleet may have left, and succeeds if in doubt: a digest in the marker, an unfinished
# change, its boot job, its header in an anchor's file.
traces() {
  [ ! -e /etc/macfleet/pending/vm_firewall ] && [ ! -f /Library/LaunchDaemons/dev.macfleet.pf.plist ] || return 0
  if [ -e /etc/macfleet/host.json ]; then
    grep -qF '"vm_firewall"' /etc/macfleet/host.json
    [ $? = 1 ] || return 0
  fi
  [ -d /etc/pf.anchors ] || return 1
  grep -qsF 'Managed by macfleet.' /etc/pf.anchors/*
  [ $? != 1 ]
}

if [ "$1" = traces ] && ! traces; then
  say nothing
  exit
fi
pfctl -s info 2>/dev/null
say "info $?"
pfctl -s References 2>/dev/null
say "references $?"
if [ -f /var/run/dev.macfleet.pf ]; then
  while read -r line; do
    case $line in Token*) printf '%s\n' "$line" ;; esac
  done </var/run/dev.macfleet.pf
  say "token 0"
fi
pfctl -s rules 2>/dev/null
say "rules $?"
pfctl -s nat 2>/dev/null
say "nat $?"
pfctl -s Tables 2>/dev/null
say "tables $?"
newline='
'
listed=$(pfctl -s Anchors 2>/dev/null)
code=$?
printf '%s\n' "$listed"
say "anchors $code"
while read -r name; do anchor "$name"; done <<EOF
$listed
EOF
conf=/etc/pf.conf job=/Library/LaunchDaemons/dev.macfleet.pf.plist
survey /etc/pf.anchors/* "$conf" "$job"
for path in /etc/pf.anchors/*; do
  case $path in */com.apple*) continue ;; esac
  # The kernel's anchors were handled above.
  case "$listed$newline" in *"  ${path##*/}$newline"*) ;; *) anchor "${path##*/}" ;; esac
  file "$path"
done
file "$conf"
file "$job"
first=/etc/macfleet/pf.conf.first
if [ -f "$first" ]; then
  # An empty file is restored completely; in any other, macOS's own lines are compared.
  bare=yes
  [ ! -f "$conf" ] || while read -r line || [ -n "$line" ]; do
    case $line in '' | '#'*) ;; *) bare='' ;; esac
  done <"$conf"
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in *com.apple*) printf '%s\n' "$line" ;; *) [ -z "$bare" ] || printf '%s\n' "$line" ;; esac
  done <"$first"
  say "first 0"
fi
launchctl print system/dev.macfleet.pf >/dev/null 2>&1
say "job $?"
[ -f /Library/LaunchDaemons/org.macports.fail2ban.plist ]
say "fail2ban $?"
ifconfig bridge100 2>/dev/null
code=$?
say "bridge $code"
if [ "$code" = 0 ]; then
  work
  say "work $?"
fi
say end
