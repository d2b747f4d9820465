# identity prints by what launchd knows the program $1 again when it has pinned it: one that a team has signed by the
# team and its name, another by its bytes.
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

# loaded_from prints what a job is loaded from: the program $1, and the text $2 of its property list.
loaded_from() {
  identity "$1"
  sum=$(printf '%s' "$2" | shasum -a 256)
  printf 'plist %s\n' "${sum%% *}"
}

# noted prints what the job of the step $1 was loaded from when launchd last started it.
noted() { [ ! -f "$receipts/$1.job" ] || cat "$receipts/$1.job"; }

# forget_program forgets that where the program $2 is not the noted one: somebody has put it there, and may have
# loaded the job since.
forget_program() {
  [ ! -f "$2" ] || case $(noted "$1") in "$(identity "$2")"*) ;; *) rm -f "$receipts/$1.job" ;; esac
}

# start starts the daemon of the step $1 anew. $2 is its label, $3 its program, $4 the text of its property list, which
# is written where it differs; $5 is "load" where it must be loaded anew, "kick" where launchd has it so and runs this
# program, "ask" where only what was noted tells whether it has.
# launchd pins the program of a job when it loads the job, and lets nothing else start under that pin. So a job is
# kicked where its program is the pinned one, and loaded anew where it is not, or where nobody knows: each loading
# makes macOS's database of background items grow.
start() {
  service=system/$2 list=/Library/LaunchDaemons/$2.plist way=$5 first=''
  look "$service"
  before=$pid
  if [ "$way" = ask ]; then
    way=load
    if [ "$(noted "$1")" = "$(loaded_from "$3" "$4")" ]; then way=kick; fi
  fi
  [ "$code" = 0 ] || way=load
  # A kill from here on leaves no note of a job that is not loaded so.
  [ "$way" = kick ] || rm -f "$receipts/$1.job"
  if ! [ -f "$list" ] || ! printf '%s' "$4" | cmp -s - "$list"; then put "$list" "$4" 0644; fi
  chmod 0644 "$list"
  chown 0:0 "$list"
  if [ "$way" = load ] || ! launchctl kickstart -k "$service"; then
    way=load
    load "$2" "$list"
  fi
}

# stays waits until the daemon that was started has a process that stays, and notes then what it was loaded from: $1
# the step, $2 the program, $3 the text of its property list. Where launchd did not start the program, it tries
# the other way, once: no job is kicked twice. One that ends by itself is only waited for.
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

# settled waits at most $1 seconds for a new process, and looks whether it is the same one 5 seconds later: in a
# crash loop each start shows one for a moment.
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
