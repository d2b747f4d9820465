# replaced are the files that a roll replaces. Their names differ also without their folders.
replaced="$bin/tailscale $bin/tailscaled $list $receipts/tailscale_client.receipt $receipts/tailscale.receipt"

# keep_former keeps the files from before a roll. An interrupted roll has kept those that worked last: they stay.
keep_former() {
  [ ! -d "$former" ] && [ -f "$bin/tailscaled" ] && [ -f "$receipts/tailscale.receipt" ] || return 0
  rm -rf "$former.new"
  mkdir "$former.new"
  for path in $replaced "$receipts/tailscale.job"; do
    [ ! -f "$path" ] || cp -p "$path" "$former.new"
  done
  mv "$former.new" "$former"
  sync
}
