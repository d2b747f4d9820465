# Uses: answer receipt daemon
# Prints the state that the step needs. $1 "traces": stop early on a host where macfleet left nothing.
if [ "$1" = traces ] && [ ! -e "$receipts/tailscale.receipt" ] && [ ! -e /etc/macfleet/pending/tailscale ]; then
  say end
  exit
fi
survey "$receipts/tailscale.receipt" "$receipts/tailscale_client.receipt" "$bin/tailscaled" "$bin/tailscale" "$list"
show_receipt tailscale
show_receipt tailscale_client

# program prints the stamp of the program $2, and its digest unless the receipt of $1 knows the stamp.
program() {
  [ -f "$bin/$2" ] || return 0
  about "$bin/$2"
  printf 'stamp %s\n' "$stamp"
  read_receipt "$1"
  case $installed in "$stamp "*) ;; *) printf 'sha %s\n' "$(sha "$bin/$2")" ;; esac
  say "$3 0"
}
program tailscale tailscaled daemon
program tailscale_client tailscale client
file "$list"
code=0
launchctl print "system/$label" 2>/dev/null || code=$?
say "job $code"
if [ "$code" = 0 ] && [ -x "$bin/tailscale" ]; then
  code=0
  client status --json --peers=false 2>/dev/null </dev/null || code=$?
  say "status $code"
  if [ "$code" = 0 ]; then
    client debug prefs 2>/dev/null </dev/null || code=$?
    say "prefs $code"
  fi
fi
[ ! -d "$folder" ] || say "folder 0"
for path in /etc/macfleet/.tailscale-key.*; do
  [ ! -e "$path" ] || printf '%s\n' "$path"
done
say "keys 0"
for path in /etc/resolver/*; do
  [ -f "$path" ] || continue
  IFS= read -r first <"$path" || :
  case $first in *'Added by tailscaled'*) printf '%s\n' "$path" ;; esac
done
say "resolvers 0"
# The note is missing between a change of the program or the job and its start.
[ ! -f "$receipts/tailscale.receipt" ] || [ -f "$receipts/tailscale.job" ] || say "unfinished 0"
if [ -d "$former" ] || [ -d "$former.new" ]; then say "former 0"; fi
kept
room
say end
