# Uses: answer receipt work bundle
# Prints the state that the step needs, without running tart, whose commands clean up folders.
# $1 "traces": stop early on a host where macfleet installed nothing.
program=/usr/local/lib/tart.app/Contents/MacOS/tart
if [ "$1" = traces ] && [ ! -e "$receipts/tart.receipt" ]; then
  work # tells a release whether the host is idle
  say "work $?"
  say end
  exit
fi
bundle=/usr/local/lib/tart.app
set -- "$receipts/tart.receipt" /usr/local/bin/tart "$program"
read_receipt tart
noted=''
if bundle_noted "$receipts/tart.bundle" "${current%% *}"; then
  noted=yes
  while read -r _ _ _ _ _ _ path; do
    [ -z "$path" ] || [ "$bundle/$path" = "$program" ] || set -- "$@" "$bundle/$path"
  done <"$receipts/tart.bundle"
fi
survey "$@"
show_receipt tart
if [ -h /usr/local/bin/tart ]; then
  say "link 0 /usr/local/bin/tart"
else
  file /usr/local/bin/tart
fi
if [ -f "$program" ]; then
  about "$program"
  printf 'stamp %s\n' "$stamp"
  case $installed in "$stamp "*) ;; *) printf 'sha %s\n' "$(sha "$program")" ;; esac
  say "program 0"
fi
if [ -n "$noted" ] && [ -f "$program" ]; then
  bundle_differs "$bundle" "$receipts/tart.bundle"
  say "bundle 0"
elif [ -n "$current" ] && [ -f "$program" ]; then
  say "unverified 0"
fi
for path in /usr/local/lib/.tart.old /usr/local/lib/.tart.old.* /usr/local/lib/.tart.new.*; do
  [ ! -d "$path" ] || printf '%s\n' "$path"
done
say "old 0"
kept
room
work
say "work $?"
say end
