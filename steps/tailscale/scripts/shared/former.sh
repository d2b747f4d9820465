# The files of tailscaled that a roll replaces, by their name in the folder of the former ones.
# each_former calls $1 with each name and its path.
each_former() {
  "$1" tailscale "$bin/tailscale" && "$1" tailscaled "$bin/tailscaled" && "$1" plist "$list" &&
    "$1" tailscale_client.receipt "$receipts/tailscale_client.receipt" && "$1" tailscale.receipt "$receipts/tailscale.receipt"
}

copy_former() { [ ! -f "$2" ] || cp -p "$2" "$former.new/$1"; }
move_former() { [ ! -f "$former/$1" ] || mv -f "$former/$1" "$2"; }

# keep_former keeps the files from before a roll. An interrupted roll has kept those that worked last: they stay.
keep_former() {
  [ ! -d "$former" ] && [ -f "$bin/tailscaled" ] && [ -f "$receipts/tailscale.receipt" ] || return 0
  rm -rf "$former.new"
  mkdir "$former.new"
  each_former copy_former
  copy_former job "$receipts/tailscale.job"
  mv "$former.new" "$former"
  sync
}

# put_back restores the files from before a roll and loads the job. It can be repeated: the folder goes last.
put_back() {
  [ -d "$former" ] || return 0
  rm -f "$receipts/tailscale.job"
  each_former move_former || return 1
  [ ! -f "$list" ] || (load "$label" "$list") || return 1
  move_former job "$receipts/tailscale.job" || return 1
  rm -rf "$former"
  sync
}
