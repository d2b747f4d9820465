# Uses: answer receipt work
# Prints the state that the step needs. $1 is the login user.
# $2 "traces": stop early on a host where macfleet left nothing.
user=$1
label=dev.macfleet.tart-kubelet
program=/usr/local/bin/tart-kubelet
config=/etc/tart-kubelet/kubeconfig
plist=/Library/LaunchDaemons/$label.plist
tab='	'
newline='
'

# traces looks for what macfleet may have left: its receipt, an unfinished change, its job.
traces() {
  [ -e "$receipts/tart_kubelet.receipt" ] || [ -e /etc/macfleet/pending/tart_kubelet ] || [ -e "$plist" ] ||
    launchctl print "system/$label" >/dev/null 2>&1
}
if [ "$2" = traces ] && ! traces; then
  say end
  exit
fi
survey "$receipts/tart_kubelet.receipt" "$program" "$config" "$plist" /var/log/tart-vms /var/lib/tart-userdata /var/log/tart-kubelet.log
show_receipt tart_kubelet
if [ -f "$program" ]; then
  about "$program"
  printf 'stamp %s\nchanged %s\naccess %s\n' "$stamp" "$changed" "$access"
  read_receipt tart_kubelet
  case $installed in "$stamp "*) ;; *) printf 'sha %s\n' "$(sha "$program")" ;; esac
  say "program 0"
fi
kept
room

# Prints only the token's claims, which are not secret, and a digest of the rest.
if [ -f "$config" ]; then
  about "$config"
  printf 'access %s\n' "$named"
  text=''
  while IFS= read -r line || [ -n "$line" ]; do
    rest=${line#"${line%%[! ]*}"}
    case $rest in
      token:*)
        case $rest in 'token: eyJ'*.eyJ*.*) rest=${rest#*.} && printf 'claims %s\n' "${rest%%.*}" ;; esac
        continue
        ;;
      'server: '*) printf 'server %s\n' "${rest#server: }" ;;
    esac
    text="$text${text:+$newline}$line"
  done <"$config"
  sum=$(
    shasum -a 256 <<EOF
$text
EOF
  )
  printf 'sha %s\n' "${sum%% *}"
  say "kubeconfig 0"
fi

# A file that may hold a foreign secret is not printed, only its digest.
secret=''
if [ -f "$plist" ]; then
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in *[Pp][Aa][Ss][Ss][Ww][Oo][Rr][Dd]* | *[Ss][Ee][Cc][Rr][Ee][Tt]* | *[Tt][Oo][Kk][Ee][Nn]*) secret=yes ;; esac
  done <"$plist"
fi
if [ -n "$secret" ]; then
  printf 'sha %s\n' "$(sha "$plist")"
  about "$plist"
  say "withheld 0 $access $plist"
else
  file "$plist"
fi

# page prints a service without its environment: lines without an arrow, and two of macfleet's own variables.
page() {
  while IFS= read -r line; do
    case $line in
      "$tab$tab"HOME' => '* | "$tab$tab"PATH' => '*) ;;
      *'=>'*) continue ;;
    esac
    printf '%s\n' "$line"
  done <<EOF
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

# abandons reports whether a property list lets the job's child processes outlive it.
abandons() {
  [ -f "$1" ] || return 1
  text=''
  while IFS= read -r line || [ -n "$line" ]; do
    text="$text${line#"${line%%[!"$tab" ]*}"}"
  done <"$1"
  case $text in *'<key>AbandonProcessGroup</key><true/>'*) return 0 ;; esac
  return 1
}
# other prints other launchd jobs that involve the same program.
other() {
  said=$(launchctl print "$1" 2>/dev/null </dev/null) || return 0
  case $said in *tart-kubelet*) ;; *) return 0 ;; esac
  from=''
  while IFS= read -r line; do
    case $line in "${tab}path = "* | "${tab}program = "* | "${tab}pid = "*) printf '%s\n' "$line" ;; esac
    case $line in "${tab}path = "*) from=${line#"${tab}path = "} ;; esac
  done <<EOF
$said
EOF
  if abandons "$from"; then echo "${tab}children = survive"; fi
  case $said in *--disable-vm-gc*) echo "${tab}gc = off" ;; esac
  say "other 0 $1"
}
# others looks for such jobs in the domain $1, except macOS's own.
others() {
  said=$(launchctl print "$1" 2>/dev/null)
  inside=''
  while read -r one two three _; do
    case $one:$two:$three in
      services:=:'{') inside=yes ;;
      '}::') inside='' ;;
      *:com.apple.* | *:: | *:"$label" | *:dev.macfleet.pf | *:dev.macfleet.undo) ;;
      *) [ -z "$inside" ] || other "$1/$three" ;;
    esac
  done <<EOF
$said
EOF
}
others system
others "gui/$(id -u "$user")"
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
for path in /var/log/tart-vms /var/lib/tart-userdata /var/log/tart-kubelet.log; do
  about "$path"
  [ -z "$named" ] || printf '%s %s\n' "${named%:*}" "$path"
done
say "folders 0"
sysctl -n hw.ncpu hw.memsize
say "hardware $?"
date +%s
say "now $?"
say end
