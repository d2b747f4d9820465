# A launchd with one job, whose processes are real. Its state: $STATE/job is the property list of the loaded job, and
# $STATE/pid the number of its process. $TESTS is the process of the tests; with it the job's ends, too.
label=com.tailscale.tailscaled

spawn() {
  echo "$(($(cat "$STATE/runs" 2>/dev/null || echo 0) + 1))" >"$STATE/runs"
  # shellcheck disable=SC2046 # no argument of the job has a space
  setsid sh -c '
    state=$1 tests=$2
    shift 2
    "$@" &
    daemon=$!
    echo "$daemon" >"$state/pid"
    (
      while kill -0 "$tests" && kill -0 "$daemon"; do sleep 1; done
      kill "$daemon"
    ) 2>/dev/null &
    wait "$daemon"
    rm -f "$state/pid"
  ' sh "$STATE" "$TESTS" $(arguments) >>"$ROOT/var/log/tailscaled.log" 2>&1 </dev/null &
  while [ ! -s "$STATE/pid" ]; do sleep 0.1; done
}

end() {
  [ -s "$STATE/pid" ] || return 0
  kill "$(cat "$STATE/pid")" 2>/dev/null
  while [ -e "$STATE/pid" ]; do sleep 0.1; done
}

arguments() { sed -n '/<key>ProgramArguments/,/<\/array>/s/^[[:space:]]*<string>\(.*\)<\/string>$/\1/p' "$STATE/job"; }

case "$*" in
  "print system/$label")
    if [ ! -e "$STATE/job" ]; then
      echo "Could not find service" >&2
      exit 113
    fi
    printf 'system/%s = {\n\tpath = %s\n\ttype = LaunchDaemon\n' "$label" "$ROOT/Library/LaunchDaemons/$label.plist"
    if [ -s "$STATE/pid" ]; then printf '\tstate = running\n'; else printf '\tstate = spawn scheduled\n'; fi
    printf '\n\tprogram = %s\n\targuments = {\n' "$ROOT/usr/local/bin/tailscaled"
    arguments | while IFS= read -r line; do printf '\t\t%s\n' "$line"; done
    printf '\t}\n\n\tminimum runtime = 10\n\truns = %s\n' "$(cat "$STATE/runs")"
    [ ! -s "$STATE/pid" ] || printf '\tpid = %s\n' "$(cat "$STATE/pid")"
    printf '\tlast exit code = (never exited)\n\tproperties = keepalive | runatload\n}\n' ;;
  "enable system/$label") ;;
  "bootout system/$label")
    [ -e "$STATE/job" ] || exit 3
    rm -f "$STATE/job"
    end ;;
  'bootstrap system '*)
    [ ! -e "$STATE/job" ] || exit 5
    cp "$3" "$STATE/job"
    spawn ;;
  "kickstart -k system/$label")
    [ -e "$STATE/job" ] || exit 113
    end
    spawn ;;
  "kickstart system/$label")
    [ -e "$STATE/job" ] || exit 113
    [ -s "$STATE/pid" ] || spawn ;;
  *)
    echo "no stub for launchctl $*" >&2
    exit 127 ;;
esac
