# put_back restores the files from before a roll and loads the job. It can be repeated: the job's text is copied, because each
# attempt deletes the one in use first, and the folder goes last.
put_back() {
  if ! [ -d "$former" ]; then
    forget_former # the rest of a deletion that was killed
    return
  fi
  rm -f "$receipts/tailscale.job"
  for path in $replaced; do
    [ ! -f "$former/${path##*/}" ] || mv -f "$former/${path##*/}" "$path" || return 1
  done
  [ ! -f "$list" ] || (load "$label" "$list") || return 1
  [ ! -f "$former/tailscale.job" ] || cp -p "$former/tailscale.job" "$receipts" || return 1
  sync
  forget_former
}
