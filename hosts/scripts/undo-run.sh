# Managed by macfleet. Takes back a change that was armed and never confirmed: its job
# runs this every 2 seconds while this succeeds, which says that something is armed.
# launchd starts the job at a boot, and while anything lies in the folder queue.
cd "${0%/*}" || exit 1
# The boot's time moves with the clock; its id, where the system has one, does not.
boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null) || boot=
[ -n "$boot" ] || boot=$(sysctl -n kern.boottime)

# due says why a change has to go, or nothing.
due() {
  if [ -s "$1/now" ]; then
    cat "$1/now"
  elif [ "$(cat "$1/boot")" != "$boot" ]; then
    echo 'the Mac was restarted'
  else
    # A clock that was set back must not put the deadline off.
    left=$(($(cat "$1/deadline") - $(date +%s)))
    limit=$(cat "$1/limit")
    [ "$left" -gt 0 ] && [ "$left" -le "$limit" ] || echo "no confirmation within $limit s"
  fi
}

mkdir -p queue
rm -rf gone.*
for armed in armed.*; do
  [ -d "$armed" ] || continue
  touch "queue/${armed#armed.}" || : # the shell would end with a redirection that fails
  touch "$armed/seen"
  why=$(due "$armed")
  [ -n "$why" ] || continue
  # A full disk must not keep anything from being taken back.
  printf '%s\n' "$why" >"$armed/why.new" && mv -f "$armed/why.new" "$armed/why"
  # This and the confirmation's mv are one race: who moves it first has decided.
  mv "$armed" "undoing.${armed#armed.}"
done 2>/dev/null

# What a killed run of this has begun is done again.
for undoing in undoing.*; do
  [ -d "$undoing" ] || continue
  set --
  i=1
  while [ -f "$undoing/arg.$i" ]; do
    value=$(cat "$undoing/arg.$i" && printf x)
    set -- "$@" "${value%x}"
    i=$((i + 1))
  done
  said=$(/bin/sh "$undoing/restore" "$@" 2>&1 </dev/null)
  code=$?
  {
    printf 'step %s\n' "$(cat "$undoing/step")"
    printf 'id %s\nwhen %s\n' "${undoing#undoing.}" "$(date +%s)"
    printf 'why %s\n' "$(cat "$undoing/why" || echo 'it was not confirmed')"
    printf 'exit %s\nsaid %s\n' "$code" "$(printf '%s\n' "$said" | tail -n 1)"
  } >undone.new && chmod 0644 undone.new && mv -f undone.new undone
  sync
  # Half a folder must not be restored from.
  mv "$undoing" "gone.${undoing#undoing.}"
done
rm -rf gone.*

# An arming that was cut short is waited for until its deadline.
arming() { [ -d "next.$1" ] && [ "$(cat "next.$1/deadline")" -gt "$(date +%s)" ]; }

again=1
for left in armed.* undoing.*; do
  [ ! -d "$left" ] || again=0
done
for entry in queue/*; do
  id=${entry#queue/}
  if arming "$id"; then
    again=0
  elif [ ! -d "armed.$id" ] && [ ! -d "undoing.$id" ]; then
    rm -f "$entry"
  fi
done 2>/dev/null
exit "$again"
