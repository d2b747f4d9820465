# identity prints how launchd identifies a pinned program $1: by team and identifier if it is signed by a team,
# otherwise by its bytes.
identity() {
  signed=$(codesign -d --verbose=2 "$1" 2>&1) || signed=''
  team='' known=''
  while IFS= read -r part; do
    case $part in
      'TeamIdentifier=not set') ;;
      'TeamIdentifier='*) team=${part#*=} ;;
      'Identifier='*) known=${part#*=} ;;
    esac
  done <<END
$signed
END
  if [ -n "$team" ]; then printf 'team %s %s\n' "$team" "$known"; else printf 'sha256 %s\n' "$(sha "$1")"; fi
}

# loaded_from describes a job's sources: the program $1 and the text $2 of its property list.
loaded_from() {
  identity "$1"
  sum=$(printf '%s' "$2" | shasum -a 256)
  printf 'plist %s\n' "${sum%% *}"
}

# noted prints the sources of the step $1's job at its last start.
noted() { [ ! -f "$receipts/$1.job" ] || cat "$receipts/$1.job"; }

# forget_program deletes that note if the program $2 has changed: someone replaced it and may have reloaded the
# job.
forget_program() {
  [ ! -f "$2" ] || case $(noted "$1") in "$(identity "$2")"*) ;; *) rm -f "$receipts/$1.job" ;; esac
}

# start restarts the daemon of the step $1: $2 label, $3 program, $4 text of the property list, which is written if it
# differs, $5 "load" to load the job again, "kick" to kickstart it, or "ask" to kickstart it only if the note of its
# last start matches. launchd pins a job's program when it loads the job and starts no other one, so a job with a new
# program must be reloaded. A running job is kickstarted where possible, because each load adds to macOS's database of
# background items.
start() {
  service=system/$2 list=/Library/LaunchDaemons/$2.plist way=$5 first=''
  look "$service"
  before=$pid
  if [ "$way" = ask ]; then
    way=load
    if [ "$(noted "$1")" = "$(loaded_from "$3" "$4")" ]; then way=kick; fi
  fi
  [ "$code" = 0 ] || way=load
  # Delete the note first: a script killed from here on must not leave a wrong one.
  [ "$way" = kick ] || rm -f "$receipts/$1.job"
  if ! [ -f "$list" ] || ! printf '%s' "$4" | cmp -s - "$list"; then put "$list" "$4" 0644; fi
  chmod 0644 "$list"
  chown 0:0 "$list"
  if [ "$way" = load ] || ! launchctl kickstart -k "$service"; then
    way=load
    load "$2" "$list"
  fi
}

# stays waits until the daemon's process stays up, then notes the job's sources: $1 step, $2 program, $3 text of the
# property list. If launchd did not start the program, it tries the other way once, but never kickstarts twice. If the
# process exits by itself, it only waits.
stays() {
  if ! settled 15; then
    before=$first
    case $way:$said in
      kick:*'state = spawn scheduled'*) ! refused || load "${service#*/}" "$list" ;;
      kick:*) load "${service#*/}" "$list" ;;
      *'state = spawn scheduled'*) ! refused || return 1 ;;
      *) launchctl kickstart "$service" || : ;;
    esac
    settled 12 || return 1
  fi
  put "$receipts/$1.job" "$(loaded_from "$2" "$3")
" 0644
}

# settled waits up to $1 seconds for a new process and checks that it is the same one 5 seconds later: a crash loop
# shows a process after every start, too.
settled() {
  tries=0
  look "$service"
  while [ -z "$pid" ] || [ "$pid" = "$before" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt "$1" ] || refused; then return 1; fi
    sleep 1
    look "$service"
  done
  first=$pid
  sleep 5
  look "$service"
  [ "$pid" = "$first" ]
}
