# Prints the state of pf, then takes a reference and releases it.
begin
say info "$(pfctl -s info 2>/dev/null | head -n 1)"
say references "$(references)"
echo '--- references'
pfctl -s References 2>/dev/null
echo '--- rules'
pfctl -sr 2>/dev/null
echo '--- translation'
pfctl -sn 2>/dev/null
echo '--- /etc/pf.conf'
cat /etc/pf.conf
echo '--- jobs of fail2ban'
launchctl list | grep -i fail2ban || echo none
echo '---'
before=$(references)
say 'on before' "$(pf_state)"
note_pf
step
pfctl -E 2>&1 | grep Token | tr -dc 0-9 >"$home/token"
during=$(references)
pfctl -X "$(cat "$home/token")" >/dev/null 2>&1
rm -f "$home/token"
after=$(references)
alone=$(pf_state)
back_pf
say 'own reference' "$before $during $after"
if [ "$((before + 1))" = "$during" ] && [ "$before" = "$after" ]; then
  say counted yes
else
  say counted no
fi
if [ "$before" != 0 ]; then
  say 'the last reference gone' 'not known: others hold one'
else
  say 'the last reference gone' "$alone"
fi
say 'on afterwards' "$(pf_state)"
