# put_back restores the programs, the receipts and the property list from before a roll, and loads the job.
put_back() {
  [ -d "$former" ] || return 0
  for one in tailscale tailscaled; do
    [ ! -f "$former/$one" ] || mv -f "$former/$one" "$bin/$one"
  done
  for one in tailscale.receipt tailscale_client.receipt; do
    [ ! -f "$former/$one" ] || mv -f "$former/$one" "$receipts/$one"
  done
  if [ -f "$former/plist" ]; then
    mv -f "$former/plist" "$list"
  fi
  rm -f "$receipts/tailscale.job"
  [ ! -f "$list" ] || load "$label" "$list"
  rm -rf "$former"
  sync
}
