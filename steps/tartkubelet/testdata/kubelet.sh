# One stub for all tools: a Mac with launchd, a kubelet and virtual machines. Its state is the files of
# $STATE; its clock advances only by sleeping. With $STATE/tracing each call first notes what a kill there
# would leave behind.
PATH=/usr/bin:/bin
if [ -e "$STATE/tracing" ]; then
  {
    ls -lRi --full-time -I calls -I count -I tools "$ROOT" "$STATE"
    find "$ROOT" "$STATE" -type f ! -name calls ! -name count ! -name tools -exec cat {} +
  } | cksum >>"$STATE/../trace"
fi
has() { [ -e "$STATE/$1" ]; }
# get sets value to a line of the state, empty where there is none.
get() {
  value=''
  [ ! -e "$STATE/$1" ] || read -r value <"$STATE/$1" || :
}
now() {
  get clock
  echo "$value"
}
label=dev.macfleet.tart-kubelet

# spawn starts the job's process; in a crash loop it lives for a moment.
spawn() {
  get pids
  pid=$((value + 1))
  echo "$pid" >"$STATE/pids"
  get runs
  echo $((value + 1)) >"$STATE/runs"
  now >"$STATE/started"
  rm -f "$STATE/refused"
  if ! cmp -s "$STATE/pin" "$ROOT/usr/local/bin/tart-kubelet"; then
    rm -f "$STATE/pid"
    echo >"$STATE/refused"
  elif grep -q crashes "$ROOT/usr/local/bin/tart-kubelet" || ! [ -s "$ROOT/etc/tart-kubelet/kubeconfig" ]; then
    rm -f "$STATE/pid"
    echo "fatal: this version crashes" >>"$ROOT/var/log/tart-kubelet.log"
  else
    echo "$pid" >"$STATE/pid"
    cksum <"$ROOT/usr/local/bin/tart-kubelet" >"$STATE/runs-of"
  fi
}

page() {
  get runs
  runs=$value
  printf 'system/%s = {\n\tpath = %s\n\ttype = LaunchDaemon\n' "$label" "$ROOT/Library/LaunchDaemons/$label.plist"
  if has draining; then
    printf '\tstate = SIGTERMed\n'
  elif has pid; then
    printf '\tstate = running\n'
  else
    printf '\tstate = spawn scheduled\n'
  fi
  printf '\n\tprogram = %s/usr/local/bin/tart-kubelet\n\targuments = {\n' "$ROOT"
  while IFS= read -r line; do printf '%s\n' "$line"; done <"$STATE/args"
  printf '\t}\n\n\tenvironment = {\n\t\tHOME => %s\n\t\tPATH => %s\n\t\tSECRET => hunter2\n\t}\n\n\tusername = m1\n\tminimum runtime = 10\n\truns = %s\n' "$ROOT/Users/m1" "$ROOT/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin" "$runs"
  get pid
  [ -z "$value" ] || printf '\tpid = %s\n' "$value"
  if has refused; then printf '\tlast exit reason = OS_REASON_CODESIGNING\n'; else printf '\tlast exit code = 1\n'; fi
  printf '\tproperties = keepalive | runatload\n}\n'
}

drain() {
  has draining || return 0
  get draining
  if [ "$value" -gt 0 ]; then echo $((value - 1)) >"$STATE/draining"; else rm -f "$STATE/draining" "$STATE/job" "$STATE/args" "$STATE/pid" "$STATE/runs"; fi
}

status=0
case "$name $*" in
  "launchctl print system/$label")
    drain
    if has job; then page; else echo "Could not find service" >&2; status=113; fi ;;
  'launchctl print system/dev.tuist.tart-kubelet')
    if has legacy; then printf 'system/dev.tuist.tart-kubelet = {\n\tpath = %s/Library/LaunchDaemons/dev.tuist.tart-kubelet.plist\n\tprogram = /usr/local/bin/tart-kubelet\n\tpid = 77\n}\n' "$ROOT"; else status=113; fi ;;
  'launchctl print system')
    printf 'system = {\n\ttype = system\n\tservices = {\n\t\t       1      - \tcom.apple.x\n'
    ! has legacy || printf '\t\t      77      - \tdev.tuist.tart-kubelet\n'
    ! has job || printf '\t\t      77      - \t%s\n' "$label"
    printf '\t}\n\tendpoints = {\n\t\t0x1 M A com.example.endpoint\n\t}\n}\n' ;;
  'launchctl print gui/501') status=113 ;;
  'launchctl print-disabled system') printf '\tdisabled services = {\n\t}\n' ;;
  "launchctl bootout system/$label") if has job; then echo 2 >"$STATE/draining"; else status=3; fi ;;
  'launchctl bootout system/dev.tuist.tart-kubelet') rm -f "$STATE/legacy" ;;
  "launchctl enable system/$label") ;;
  'launchctl bootstrap system '*)
    if has legacy; then echo two kubelets >>"$STATE/faults"; fi
    if has job; then echo 'Bootstrap failed: 5: Input/output error' >&2; status=5; else
      cp "$3" "$STATE/job"
      cp "$ROOT/usr/local/bin/tart-kubelet" "$STATE/pin"
      sed -n '/ProgramArguments/,/<\/array>/s/^\t\t<string>\(.*\)<\/string>$/\t\t\1/p' "$3" >"$STATE/args"
      spawn
    fi ;;
  "launchctl kickstart -k system/$label" | "launchctl kickstart system/$label")
    if has legacy; then echo two kubelets >>"$STATE/faults"; fi
    if has job; then spawn; else status=113; fi ;;
  'sfltool dumpbtm') printf ' Disposition: [enabled, allowed, notified] (0xb)\n Identifier: 8.%s\n' "$label" ;;
  'ps -axwwo pid=,ppid=,etime=,command=')
    ! has work || cat "$STATE/work"
    if has pid; then
      get clock
      age=$value
      get started
      age=$((age - value))
      get pid
      printf '%5s     1    %02d:%02d %s\n' "$value" $((age / 60)) $((age % 60)) "$ROOT/usr/local/bin/tart-kubelet --node-name=x --token=hunter2"
    fi
    echo '    1     0 01:00:00 /sbin/launchd' ;;
  'df -k /') printf 'Filesystem 1024-blocks Used Available Capacity iused ifree %%iused Mounted on\n/dev/disk3s1s1 482797652 10485760 400000000 3%% 404167 4000000000 0%% /\n' ;;
  'sysctl -n hw.ncpu hw.memsize') printf '10\n17179869184\n' ;;
  'id -u m1') echo 501 ;;
  'date +%s') now ;;
  'sleep '*)
    get clock
    echo $((value + $1)) >"$STATE/clock"
    if has flapping && [ "$1" = 5 ]; then spawn; fi ;;
  'stat -f %i %z %m|%c|%u:%g:%Lp|%Su:%Sg:%Lp|%N '*)
    shift 2
    stat -c '%i|%s %Y|%Z|%a|%n' "$@" | while IFS='|' read -r inode times changed mode path; do
      get "owner.$inode"
      echo "$inode $times|$changed|0:0:$mode|${value:-root:wheel}:$mode|$path"
    done ;;
  'stat -f %u:%g:%Lp '*) exec stat -c '0:0:%a' "$3" ;;
  "stat -f %i %z %m "*) exec stat -c '%i %s %Y' "$3" ;;
  'chown -R '*) ;;
  'chown '*)
    owner=$1
    shift
    for inode in $(stat -c %i "$@"); do echo "$owner" >"$STATE/owner.$inode"; done ;;
  'codesign -d --verbose=2 '*) printf 'Executable=%s\nIdentifier=tart-kubelet\nTeamIdentifier=%s\n' "$3" "$(grep -o '^TEAM[0-9]*' "$3" || echo not set)" >&2 ;;
  'codesign -d --entitlements - '*) grep -q '^noentitlement' "$4/Contents/MacOS/tart" || printf '[Dict]\n\t[Key] com.apple.security.virtualization\n' ;;
  'codesign -v '*) if grep -q ^unsigned "$2" 2>/dev/null; then echo "$2: code object is not signed at all" >&2; status=1; fi ;;
  'codesign --force --sign - '*) { echo signed; cat "$4"; } >"$4.signed" && chmod 0755 "$4.signed" && mv -f "$4.signed" "$4" ;;
  'sync ') ;;
  shasum\ *) exec sha256sum ;;
  chmod\ * | cp\ * | mkdir\ * | mktemp\ * | mv\ * | rm\ * | tar\ *) exec "$name" "$@" ;;
  *)
    echo "no stub for $name $*" >&2
    echo "$name $*" >>"$STATE/faults"
    status=127 ;;
esac
exit "$status"
