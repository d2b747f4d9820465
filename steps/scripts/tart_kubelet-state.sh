# Uses: answer receipt work
# Everything that the step looks at. $1 is the login user.
# $2 "traces": where macfleet has left nothing, that is all that is said.
user=$1
label=dev.macfleet.tart-kubelet
program=/usr/local/bin/tart-kubelet
config=/etc/tart-kubelet/kubeconfig
plist=/Library/LaunchDaemons/$label.plist
tab='	'

# traces looks for what macfleet may have left: its receipt, a change that was never proven, its job.
traces() {
  [ -e "$receipts/tart_kubelet.receipt" ] || [ -e /etc/macfleet/pending/tart_kubelet ] || [ -e "$plist" ] ||
    launchctl print "system/$label" >/dev/null 2>&1
}
if [ "$2" = traces ] && ! traces; then
  say end
  exit
fi
file "$receipts/tart_kubelet.receipt"
if [ -f "$program" ]; then
  rest=$(stat -f '%i %z %m|%c|%u:%g:%Lp' "$program")
  now=${rest%%|*} rest=${rest#*|}
  printf 'stamp %s\nchanged %s\naccess %s\n' "$now" "${rest%%|*}" "${rest#*|}"
  read_receipt tart_kubelet
  case $installed in "$now "*) ;; *) printf 'sha %s\n' "$(sha "$program")" ;; esac
  say "program 0"
fi
kept
room

# Of the token only the claims are shown, which are no secret; of all else a digest.
if [ -f "$config" ]; then
  printf 'access %s\n' "$(stat -f '%Su:%Sg:%Lp' "$config")"
  sum=$(grep -v '^ *token:' "$config" | shasum -a 256)
  printf 'sha %s\n' "${sum%% *}"
  while read -r key value _; do
    case $key in
      server:) printf 'server %s\n' "$value" ;;
      token:) case $value in eyJ*.eyJ*.*) value=${value#*.} && printf 'claims %s\n' "${value%%.*}" ;; esac ;;
    esac
  done <"$config"
  say "kubeconfig 0"
fi

# A secret that somebody put there is not read: then a digest must do.
if [ -f "$plist" ] && grep -qiE 'password|secret|token' "$plist"; then
  printf 'sha %s\n' "$(sha "$plist")"
  say "withheld 0 $(stat -f '%u:%g:%Lp' "$plist") $plist"
else
  file "$plist"
fi

# page shows a service without the environment that others gave it: lines without an arrow, and two of ours.
page() {
  grep -E "^$tab$tab(HOME|PATH) => |^([^=]|=[^>])*=?\$" <<EOF
$1
EOF
}
said=$(launchctl print "system/$label" 2>/dev/null)
code=$?
page "$said"
say "job $code"
said=$(launchctl print-disabled system 2>/dev/null)
while IFS= read -r line; do
  case $line in *"\"$label\""*) printf '%s\n' "$line" ;; esac
done <<EOF
$said
EOF
say "disabled 0"

# other shows what else launchd has that has to do with the same program.
other() {
  said=$(launchctl print "$1" 2>/dev/null </dev/null) || return 0
  case $said in *tart-kubelet*) ;; *) return 0 ;; esac
  printf '%s\n' "$said" | grep -E "^${tab}(path|program|pid) = "
  case $said in *--disable-vm-gc*) echo "${tab}gc = off" ;; esac
  say "other 0 $1"
}
# A shell reads a pipe byte by byte: macOS's own services, which are hundreds, and what is no service never
# come to it.
gui=gui/$(id -u "$user")
{
  echo '== system'
  launchctl print system
  echo "== $gui"
  launchctl print "$gui"
} 2>/dev/null | grep -E "^$tab$tab|services = \{|\}|^== " | grep -v "[ $tab]com\.apple\." | while read -r one two three _; do
  case "$one $two $three" in
    '== '*) domain=$two inside='' ;;
    'services = {') inside=yes ;;
    '}  ') inside='' ;;
    *)
      case $inside:$three in
        "yes:$label" | yes:dev.macfleet.pf | yes:dev.macfleet.undo | yes: | :*) ;;
        *) other "$domain/$three" ;;
      esac
      ;;
  esac
done
set --
for path in /Library/LaunchDaemons/*.plist /Library/LaunchAgents/*.plist "/Users/$user/Library/LaunchAgents"/*.plist; do
  if [ -f "$path" ] && [ "$path" != "$plist" ]; then set -- "$@" "$path"; fi
done
[ $# = 0 ] || grep -lsF '/tart-kubelet</string>' "$@"
say "plists 0"

list_processes
while read -r pid parent age command _; do
  case ${command##*/} in tart-kubelet) printf '%s %s %s %s\n' "$pid" "$parent" "$age" "$command" ;; esac
done <<EOF
$all
EOF
say "processes $code"
show_work
say "work $code"
for path in "/Users/$user/.tart/vms"/*; do
  [ ! -d "$path" ] || printf '%s\n' "${path##*/}"
done
say "machines 0"
set --
for path in /var/log/tart-vms /var/lib/tart-userdata /var/log/tart-kubelet.log; do
  [ ! -e "$path" ] || set -- "$@" "$path"
done
[ $# = 0 ] || stat -f '%Su:%Sg %N' "$@"
say "folders 0"
sysctl -n hw.ncpu hw.memsize
say "hardware $?"
date +%s
say "now $?"
say end
