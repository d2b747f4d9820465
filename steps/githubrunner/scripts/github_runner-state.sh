# Uses: answer receipt work
# Prints what the host says of its runners. No content of a file with credentials is printed.
# $1 the login user, $2 "traces": stop early on a host where macfleet set up no runner.
user=$1
home=/Users/$user
folder=$home/actions-runner
if [ "$2" = traces ] && [ ! -e "$receipts/github_runner.receipt" ] && [ ! -e /etc/macfleet/pending/github_runner ]; then
  say end
  exit
fi
list_processes
show_work
say "work $code"

recorded=''
if [ -f "$receipts/github_runner.receipt" ]; then
  while read -r word rest; do
    printf '%s %s\n' "$word" "$rest"
    [ "$word" != root ] || recorded=$rest
  done <"$receipts/github_runner.receipt"
  say "receipt 0"
fi

# roots adds a runner's folder once.
roots=$folder
newline='
'
add_root() {
  case "$newline$roots$newline" in *"$newline$1$newline"*) ;; *) roots=$roots$newline$1 ;; esac
}
[ -z "$recorded" ] || add_root "$recorded"

# Runners that svc.sh or macfleet set up: their property lists name their folders.
lists='' labels=''
for path in "$home/Library/LaunchAgents"/actions.runner.*.plist; do
  [ -f "$path" ] || continue
  root=''
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      *'<string>/'*'/runsvc.sh</string>'*)
        root=${line#*<string>}
        root=${root%/runsvc.sh</string>*}
        ;;
    esac
  done <"$path"
  lists="$lists$root|$path$newline"
  name=${path##*/}
  labels="$labels${name%.plist}$newline"
  [ -z "$root" ] || add_root "$root"
done

set --
while IFS='|' read -r _ path; do
  [ -z "$path" ] || set -- "$@" "$path"
done <<END
$lists
END
while IFS= read -r root; do
  for name in '' /.runner /.runner_migrated /.credentials /.credentials_migrated /.credentials_rsaparams /.service /.path /runsvc.sh /bin/runsvc.sh /bin/Runner.Listener; do
    set -- "$@" "$root$name"
  done
done <<END
$roots
END
survey "$@"

while IFS='|' read -r root path; do
  [ -n "$path" ] || continue
  about "$path"
  printf 'root %s\nsha %s\n' "$root" "$(sha "$path")"
  say "plist 0 $named $path"
done <<END
$lists
END

# show prints the settings or the search path of a runner, which hold no secret.
show() {
  while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done <"$1"
  say "$2 0 $root"
}

installed=''
while IFS= read -r root; do
  about "$root"
  [ -n "$named" ] || continue
  owner=$named
  for name in .runner .runner_migrated .credentials .credentials_migrated .credentials_rsaparams .service runsvc.sh bin/runsvc.sh bin/Runner.Listener; do
    about "$root/$name"
    [ -z "$stamp" ] || {
      size=${stamp#* }
      printf '%s %s\n' "$name" "${size%% *}"
    }
  done
  say "files 0 $owner $root"
  if [ -f "$root/.runner_migrated" ]; then
    show "$root/.runner_migrated" settings # GitHub sent it later, and the listener prefers it
  elif [ -f "$root/.runner" ]; then
    show "$root/.runner" settings
  fi
  [ ! -f "$root/.path" ] || show "$root/.path" path
  if [ -x "$root/bin/Runner.Listener" ]; then
    installed=yes
    # After an update bin is a link that names the version. Starting the program leaves a log in _diag.
    linked=''
    [ ! -h "$root/bin" ] || linked=$(readlink "$root/bin")
    case ${linked##*/} in
      bin.[0-9]*) printf '%s\n' "${linked##*/bin.}" && say "version 0 $root" ;;
      *)
        /bin/sh -c 'exec "$1" --version' sh "$root/bin/Runner.Listener"
        say "version $? $root"
        ;;
    esac
  fi
done <<END
$roots
END

uid=$(id -u "$user")
said=$(launchctl print "gui/$uid" 2>/dev/null)
code=$?
while read -r one two three _; do
  case $one:$two:$three in
    session:=:*) printf 'session %s\n' "$three" ;;
    *:actions.runner.*)
      case "$newline$labels" in *"$newline$three$newline"*) ;; *) labels="$labels$three$newline" ;; esac
      ;;
  esac
done <<END
$said
END
say "domain $code"

# Why a listener stopped is in the last lines of its output.
while IFS= read -r label; do
  [ -n "$label" ] || continue
  said=$(launchctl print "gui/$uid/$label" 2>/dev/null)
  code=$?
  while IFS= read -r line; do
    case $line in *'=>'*) ;; *) printf '%s\n' "$line" ;; esac
  done <<PAGE
$said
PAGE
  say "job $code $label"
  log=$home/Library/Logs/$label/stdout.log
  [ -f "$log" ] || continue
  said=$(tail -n 60 "$log")
  code=$?
  while IFS= read -r line; do
    case $line in
      *': Running job: '* | *': Job '*) ;; # a workflow's author chooses its name
      *'Listening for Jobs'* | *'registration has been deleted'* | *'no longer exists on the server'* | *'session for this runner already exists'* | \
        *'SessionConflictException'* | *'is deprecated and cannot receive messages'* | *'clock may be out of sync'* | *'Not configured'*) printf '%s\n' "$line" ;;
    esac
  done <<LINES
$said
LINES
  say "log $code $label"
done <<END
$labels
END
[ -n "$installed" ] || room
say end
