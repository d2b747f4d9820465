# Everything that the step looks at. Behind each answer stands a line with its name, its exit code
# and what it is of. What pfctl says on stderr is noise.
say() { printf '\n== %s\n' "$*"; }

anchor() {
  case $1 in com.apple* | '*') return ;; esac
  pfctl -a "$1" -s rules 2>/dev/null
  say "live rules $? $1"
  pfctl -a "$1" -s Tables 2>/dev/null
  say "live tables $? $1"
  pfctl -a "$1" -t vm_sources -T show 2>/dev/null
  say "live vm_sources $? $1"
  pfctl -a "$1" -t blocked_dst -T show 2>/dev/null
  say "live blocked_dst $? $1"
}

file() {
  [ -f "$1" ] || return
  cat "$1"
  say "file $? $(stat -f '%u:%g:%Lp' "$1") $1"
}

pfctl -s info 2>/dev/null
say "info $?"
pfctl -s rules 2>/dev/null
say "rules $?"
pfctl -s nat 2>/dev/null
say "nat $?"
pfctl -s Tables 2>/dev/null
say "tables $?"
pfctl -s Anchors 2>/dev/null
say "anchors $?"
pfctl -s Anchors 2>/dev/null | while read -r name; do anchor "$name"; done
for path in /etc/pf.anchors/*; do
  case $path in */com.apple*) continue ;; esac
  anchor "${path##*/}"
  file "$path"
done
file /etc/pf.conf
file /Library/LaunchDaemons/dev.macfleet.pf.plist
launchctl print system/dev.macfleet.pf >/dev/null 2>&1
say "job $?"
ifconfig bridge100 2>/dev/null
say "bridge $?"
say end
