lib=/usr/local/lib
bundle=$lib/tart.app
program=$bundle/Contents/MacOS/tart

# restore puts back the newest bundle that a killed run moved aside.
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

# sweep deletes leftovers of earlier runs. macOS protects launched apps even from root (App Management); a plan lists
# what could not be deleted.
sweep() { rm -rf "$lib/.tart.old" "$lib"/.tart.old.* "$lib"/.tart.new.* "$lib"/macfleet/.bundle.* 2>/dev/null || :; }

# protected exits with the fix for a bundle that macOS protects.
protected() {
  echo "macOS does not let macfleet $1 $bundle (App Management protects launched apps): allow full disk access for remote users (System Settings, General, Sharing, Remote Login) and apply again" >&2
  exit 1
}
