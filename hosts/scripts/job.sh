# Jobs that launchd runs for macfleet. $1 is the job's name, $2 the user it runs as (root,
# user or gui), $3 the login user.
name=$1 as=$2 user=$3
shift 3
jobs=/etc/macfleet/jobs
job=$jobs/$name
label=dev.macfleet.job.$name
domain=system
if [ "$as" = gui ]; then domain=gui/$(id -u "$user"); fi

loaded() { launchctl print "$domain/$label" >/dev/null 2>&1; }

# need_session ends the script if the login user has no Aqua session. The exit code
# of launchctl for this differs between releases.
need_session() {
  [ "$as" = gui ] || return 0
  code=0
  said=$(launchctl print "$domain" 2>/dev/null) || code=$?
  case $said in *'session = Aqua'*) [ "$code" != 0 ] || return 0 ;; esac
  echo "no gui session of $user: launchctl print $domain failed with exit code $code" >&2
  exit 69
}

# look prints the state of the job: none, running, ended, or lost (ended without a
# result).
look() {
  if [ ! -d "$job" ]; then
    echo none
    return
  fi
  state=lost
  if said=$(launchctl print "$domain/$label" 2>/dev/null); then
    case $said in *'	pid = '* | *'last exit code = (never exited)'*) state=running ;; esac
  else
    born=$(cat "$job/born" 2>/dev/null) || born=0
    # A folder this young belongs to a run that is about to start it.
    [ $(($(date +%s) - born)) -ge 30 ] || state=running
  fi
  if [ -f "$job/out/exit" ]; then state=ended; fi
  echo "$state"
}

# drop_job removes the job and its files.
drop_job() {
  if loaded; then
    launchctl bootout "$domain/$label" >/dev/null 2>&1 || :
    i=0
    # The label is free once the process has ended; only then can it be used again.
    while loaded && [ "$i" -lt 20 ]; do
      sleep 1
      i=$((i + 1))
    done
  fi
  rm -rf "$job" "$jobs/.$name".* "$jobs/$name.plist"
}

# show prints the job's output, up to a limit.
show() {
  tail -c 1000000 "$job/out/stdout"
  tail -c 1000000 "$job/out/stderr" >&2
}

# start_job creates the job and starts it. $1 is the digest of its content, $2 its
# script, $3 the text that launchd runs, $4 the property list; the arguments of the
# script follow. It fails if another run was faster.
start_job() {
  mkdir -p "$jobs" && chmod 0755 /etc/macfleet "$jobs" && new=$(mktemp -d "$jobs/.$name.XXXXXX") && mkdir "$new/out" || return 1
  printf '%s\n' "$1" >"$new/digest" && date +%s >"$new/born" && printf '%s' "$2" >"$new/script" && printf '%s' "$3" >"$new/run" || return 1
  printf '%s' "$4" >"$new/plist" || return 1
  shift 4
  i=1
  for arg in "$@"; do
    printf '%s' "$arg" >"$new/arg.$i" || return 1
    i=$((i + 1))
  done
  chmod 0700 "$new" "$new/out"
  if [ "$as" != root ]; then
    chmod 0755 "$new"
    chmod 0644 "$new"/[a-np-z]*
    chown "$user" "$new/out" || return 1
  fi
  # Outside the folder, which its user may write to: launchd is strict about it.
  chmod 0644 "$new/plist" && chown 0:0 "$new/plist" || return 1
  if [ -d "$job" ]; then return 1; fi
  mv "$new" "$job" || return 1
  # If another run created the folder in the meantime, this run's is inside it now.
  inside=$job/${new##*/}
  if [ -d "$inside" ]; then
    rm -rf "$inside"
    return 1
  fi
  mv -f "$job/plist" "$jobs/$name.plist"
  launchctl enable "$domain/$label"
  launchctl bootstrap "$domain" "$jobs/$name.plist" || { sleep 2 && launchctl bootstrap "$domain" "$jobs/$name.plist"; } && return
  code=$?
  rm -rf "$job" "$jobs/$name.plist"
  exit "$code"
}
