# Records pf's references and vmnet's anchors during the life of a virtual machine, and a full load of
# the main ruleset while it runs. $1 is the virtual machine to copy.
if [ -z "$1" ]; then
  say skipped 'no virtual machine was named: VM=name of one with a network'
  exit 0
fi
begin
network() {
  address=$(as_user tart ip "$vm" 2>/dev/null) || address=
  [ -n "$address" ] || { echo 'no address'; return; }
  if as_user tart exec "$vm" true >/dev/null 2>&1; then
    if as_user tart exec "$vm" ping -c 2 -t 5 "$outside" >/dev/null 2>&1; then echo reaches; else echo 'does not reach'; fi
  else
    echo 'not known: tart exec does not work in it'
  fi
}
outside=$(route -n get default 2>/dev/null | grep gateway | tr -d ' ' | cut -d : -f 2) || outside=
say 'before, references' "$(references)"
say 'before, points' "$(points)"
note_pf
step
: >"$home/vm"
as_user tart clone "$1" "$vm" || exit 1
step
as_user tart run --no-graphics "$vm" >"$home/run.log" 2>&1 </dev/null &
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do
  as_user tart ip "$vm" >/dev/null 2>&1 && break
  sleep 5
  step
done
say 'during, references' "$(references)"
say 'during, points' "$(points)"
say 'during, guest' "$(network)"
step
pfctl -nf /etc/pf.conf >/dev/null 2>&1 && pfctl -f /etc/pf.conf >/dev/null 2>&1
say 'exit of the load' "$?"
sleep 2
step
say 'after the load, points' "$(points)"
say 'after the load, guest' "$(network)"
as_user tart stop "$vm" >/dev/null 2>&1
sleep 10
say 'after, references' "$(references)"
say 'after, points' "$(points)"
say 'after, pf' "$(pf_state)"
back_pf
as_user tart delete "$vm" >/dev/null 2>&1
rm -f "$home/vm"
