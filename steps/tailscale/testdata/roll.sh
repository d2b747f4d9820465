# The tools of a Mac. launchctl remembers whether the job is loaded, and refuses it as often as the file says.
case $name in
  launchctl)
    case $1 in
      print)
        [ -e "$STATE/loaded" ] || exit 113
        printf 'system/x = {\n\tstate = running\n\tpid = %s\n}\n' "$(cat "$STATE/pid")" ;;
      bootout) /bin/rm -f "$STATE/loaded" ;;
      bootstrap)
        read -r left <"$STATE/refusals"
        [ "$left" = 0 ] || { echo "$((left - 1))" >"$STATE/refusals"; exit 5; }
        /bin/cp "$3" "$STATE/loaded"
        echo "$number" >"$STATE/pid" ;;
      kickstart) echo "$number" >"$STATE/pid" ;;
    esac ;;
  codesign) [ "$1" = -v ] || echo 'TeamIdentifier=not set' ;;
  shasum) [ "$1" = -a ] && shift 2; /usr/bin/sha256sum "$@" ;;
  stat) echo 1 2 3 ;;
  mv | cp | rm | mkdir)
    if [ "$victim $when" = "$number within" ]; then
      for one in "$@"; do
        [ ! -d "$one" ] || { set -- "$one"/*; /bin/rm -f "$1"; }
      done
      kill -9 0
    fi
    "/bin/$name" "$@" ;;
esac
