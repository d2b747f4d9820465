# depart takes the runner's job $2 of the login user $1 out of launchd; with "list" as $3, its property list goes, too. A
# listener needs up to 30 s to cancel its job and to close its session, which GitHub keeps for minutes if it is killed. The
# script has a minute.
depart() {
  [ -n "$2" ] || return 0
  leave "gui/$(id -u "$1")/$2" 45
  [ "$3" != list ] || rm -f "/Users/$1/Library/LaunchAgents/$2.plist"
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
