# sudo gives root where a file named free exists or the drop-in is whole, else for the right password. With a file
# named cached, sudo still remembers a password; with one named useless, another rule overrides the drop-in.
free() { [ -e "$STATE/free" ] || { [ ! -e "$STATE/useless" ] && cmp -s "$STATE/want" "$ROOT/etc/sudoers.d/macfleet"; }; }
if [ "$*" = '-n true' ] && [ -e "$STATE/cached" ]; then exit 0; fi
case "$*" in
'-n true' | '-k -n true')
  free || { echo 'sudo: a password is required' >&2; exit 1; }
  ;;
'-n -u m1 '*) shift 3; exec "$@" ;;
'-n '*)
  free || exit 1
  shift
  exec "$@"
  ;;
'-k -S -p  '*)
  shift 4
  if ! [ -e "$STATE/nopasswd" ] && ! free; then
    IFS= read -r given
    [ "$given" = "$(cat "$STATE/right")" ] || exit 1
  fi
  exec "$@"
  ;;
*) exit 9 ;;
esac
