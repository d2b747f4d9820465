lib=/usr/local/lib
bundle=$lib/tart.app
program=$bundle/Contents/MacOS/tart

# restore puts the bundle back that a killed run left aside: the last one, as more may have stayed.
restore() {
  if [ -e "$bundle" ] || [ -h "$bundle" ]; then return 0; fi
  last=''
  for one in "$lib"/.tart.old.*; do
    if [ -d "$one/tart.app" ]; then
      # shellcheck disable=SC3013 # beyond POSIX, and macOS's bash has it
      if [ -z "$last" ] || [ "$one" -nt "$last" ]; then last=$one; fi
    fi
  done
  if [ -n "$last" ]; then
    mv "$last/tart.app" "$bundle"
  elif [ -d "$lib/.tart.old" ]; then
    mv "$lib/.tart.old" "$bundle"
  fi
}

# sweep removes what earlier runs left. macOS protects an app that was launched, from root as well (App Management):
# what it keeps stays, and a plan names it.
sweep() { rm -rf "$lib/.tart.old" "$lib"/.tart.old.* "$lib"/.tart.new.* "$lib"/macfleet/.bundle.* 2>/dev/null || :; }

# protected says what helps where macOS keeps the bundle as it is, and ends the script.
protected() {
  echo "macOS does not let macfleet $1 $bundle (App Management protects apps that were launched): in System Settings, General, Sharing, Remote Login, allow full disk access for remote users, and apply again" >&2
  exit 1
}
