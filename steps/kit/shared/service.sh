# look sets the exit code and the pid that launchd gives for the service $1, and said to its page.
look() {
  code=0
  said=$(launchctl print "$1" 2>/dev/null) || code=$?
  pid=${said#*"
	pid = "}
  if [ "$pid" = "$said" ]; then
    pid=''
  else
    pid=${pid%%"
"*}
  fi
}

# refused succeeds where the page says that the program was not allowed to start: it is not the one that launchd
# pinned when it loaded the job, or the kernel refuses its signature.
refused() {
  case $said in *'last exit reason = OS_REASON_CODESIGNING'* | *'last exit code = 78'* | *'needs LWCR update'*) return 0 ;; esac
  return 1
}

# leave takes the service $1 out of launchd. Its label is free only when print says that it is gone: bootout returns
# before that, and what is loaded in between is refused and gone. launchd may give the process 20 s to end; $2 is how many
# seconds to wait for a job that gets more.
leave() {
  look "$1"
  tries=0
  [ "$code" != 0 ] || launchctl bootout "$1" 2>/dev/null || :
  while [ "$code" != 113 ] && [ "$code" != 112 ] && [ "$code" != 125 ]; do
    look "$1"
    tries=$((tries + 1))
    [ "$tries" -lt "${2:-31}" ] || { echo "launchd does not unload $1" >&2; exit 1; }
    case $code in 112 | 113 | 125) ;; *) sleep 1 ;; esac
  done
}

# load takes the daemon $1 out of launchd and loads it from the property list $2, with the present program.
# launchd has been seen to refuse a list that was just written, once.
load() {
  leave "system/$1"
  launchctl enable "system/$1"
  tries=0
  until launchctl bootstrap system "$2"; do
    look "system/$1"
    [ "$code" != 0 ] || break
    tries=$((tries + 1))
    [ "$tries" -lt 4 ] || { echo "launchd refuses $2" >&2; exit 1; }
    sleep 1
  done
}
