# depart takes the runners' jobs $2… of the login user $1 out of launchd. A listener needs up to 30 s to cancel its job and
# to close its session, which GitHub keeps for minutes if it is killed; launchd gives it 60 s.
depart() {
  uid=$(id -u "$1")
  shift
  for one in "$@"; do
    [ -z "$one" ] || leave "gui/$uid/$one" 75
  done
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
