# depart takes the runner's job $2 of the login user $1 out of launchd; with "list" as $3, its property list goes, too.
depart() {
  [ -n "$2" ] || return 0
  part "gui/$(id -u "$1")/$2"
  [ "$3" != list ] || rm -f "/Users/$1/Library/LaunchAgents/$2.plist"
}

# part takes the runner's job $1 out of launchd. A listener needs up to 30 s to end and to close its session, which GitHub keeps
# for minutes if it is killed. macfleet's property list gives it 60 s; by that of svc.sh launchd kills it after 5 s, so such a
# job gets a signal before.
part() {
  look "$1"
  case $said in
    *'exit timeout = 60'*) ;;
    *)
      tries=0
      [ -z "$pid" ] || launchctl kill SIGTERM "$1" || :
      while [ -n "$pid" ] && [ "$tries" -lt 30 ]; do
        sleep 1
        look "$1"
        tries=$((tries + 1))
      done
      ;;
  esac
  leave "$1" 25 # the whole script has a minute
}

# put_for replaces the file $2 of the login user $1 with the text $3 and the mode $4. launchd reads every file in its
# folders, so the temporary one is elsewhere.
put_for() {
  rm -f /usr/local/lib/macfleet/.put.*
  fresh=$(mktemp /usr/local/lib/macfleet/.put.XXXXXX)
  printf '%s' "$3" >"$fresh"
  chmod "$4" "$fresh"
  chown "$1:staff" "$fresh"
  mv -f "$fresh" "$2"
}

# idle_or_leave ends the script if a workflow's job runs on the host, unless $1 is "force".
idle_or_leave() {
  [ "$1" != force ] || return 0
  busy=$(work)
  [ -n "$busy" ] || return 0
  printf '%s\n' "$busy" >&2
  echo "work started on the host after the plan was made, so its runner was not touched" >&2
  exit 75
}
