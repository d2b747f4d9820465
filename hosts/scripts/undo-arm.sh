# $1 is the id, $2 the step, $3 the seconds until the undo, $4 the script
# that restores, $5 the text that launchd runs, $6 its job; the arguments of the
# script follow.
set -e
id=$1 step=$2 limit=$3 restore=$4 run=$5 job=$6
shift 6
dir=/etc/macfleet/undo
label=dev.macfleet.undo
plist=/Library/LaunchDaemons/$label.plist
mkdir -p "$dir/queue" # launchd runs the job while anything lies there, and not when it is empty
chmod 0755 /etc/macfleet "$dir" "$dir/queue"

# busy prints another change that is not confirmed, and fails if there is none.
busy() {
  for other in "$dir"/armed.* "$dir"/undoing.*; do
    if [ -d "$other" ] && [ "${other##*.}" != "$id" ]; then
      printf '%s %s\n' $(($(cat "$other/deadline") - $(date +%s))) "$(cat "$other/step")"
      return 0
    fi
  done
  return 1
}

# same compares a file with a text; put replaces it. The temporary file is
# here, because launchd reads every file in its own folder.
same() { [ -f "$1" ] && [ "$(cat "$1" && printf x)" = "$2x" ]; }
put() {
  printf '%s' "$2" >"$dir/put.new"
  chmod 0644 "$dir/put.new"
  chown 0:0 "$dir/put.new"
  mv -f "$dir/put.new" "$1"
}

loaded() { launchctl print "system/$label" >/dev/null 2>&1; }

# The job is registered once: each registration makes the database of background
# items grow, and one that has grown too far keeps every daemon from the next boot.
install_job() {
  same "$dir/run.sh" "$run" || put "$dir/run.sh" "$run"
  if ! same "$plist" "$job"; then
    put "$plist" "$job"
    launchctl bootout "system/$label" 2>/dev/null || :
    i=0
    while loaded && [ "$i" -lt 15 ]; do
      i=$((i + 1))
      sleep 1
    done
  fi
  loaded && return
  put "$plist" "$job"
  launchctl enable "system/$label"
  launchctl bootstrap system "$plist" || { sleep 2 && launchctl bootstrap system "$plist"; }
}

if busy; then exit 3; fi
rm -rf "$dir"/next.* "$dir"/confirmed.*
install_job

next=$dir/next.$id
mkdir "$next"
chmod 0711 "$next" # the login user reads the deadline and the step, whose names it knows
boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null) || boot=
[ -n "$boot" ] || boot=$(sysctl -n kern.boottime)
printf '%s\n' "$boot" >"$next/boot"
printf '%s\n' "$step" >"$next/step"
printf '%s\n' "$limit" >"$next/limit"
printf '%s\n' $(($(date +%s) + limit)) >"$next/deadline"
printf '%s' "$restore" >"$next/restore"
i=1
for arg in "$@"; do
  printf '%s' "$arg" >"$next/arg.$i"
  i=$((i + 1))
done
: >"$dir/queue/$id"
sync
mv "$next" "$dir/armed.$id"
sync
# Of two runs that arm at once, a run that sees the other stops.
if busy; then
  mv "$dir/armed.$id" "$next"
  rm -rf "$next" "$dir/queue/$id"
  exit 3
fi

# If the job does not run, nothing would be undone.
i=0
until [ -e "$dir/armed.$id/seen" ]; do
  if [ "$i" -ge 15 ]; then
    mv "$dir/armed.$id" "$next"
    rm -rf "$next" "$dir/queue/$id"
    echo "the job $label is loaded and does not run" >&2
    exit 1
  fi
  launchctl kickstart "system/$label" || :
  [ -e "$dir/armed.$id/seen" ] || sleep 1
  i=$((i + 1))
done
