# Uses: answer receipt
# Prints the state that the step needs. $1 "traces": stop early on a host where macfleet left nothing.
if [ "$1" = traces ] && [ ! -e "$receipts/node_exporter.receipt" ] && [ ! -e /etc/macfleet/pending/node_exporter ]; then
  say end
  exit
fi
label=dev.macfleet.node-exporter
program=/usr/local/bin/node_exporter
list=/Library/LaunchDaemons/$label.plist
survey "$receipts/node_exporter.receipt" "$receipts/node_exporter-run" "$program" "$list"
show_receipt node_exporter
if [ -f "$program" ]; then
  about "$program"
  printf 'stamp %s\n' "$stamp"
  read_receipt node_exporter
  case $installed in "$stamp "*) ;; *) printf 'sha %s\n' "$(sha "$program")" ;; esac
  say "program 0"
fi
file "$receipts/node_exporter-run"
file "$list"
code=0
launchctl print "system/$label" 2>/dev/null || code=$?
say "job $code"
kept
room
say end
