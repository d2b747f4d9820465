# bundle_list prints what is in the folder $1, a line each: f, d or l, and the path below $2.
bundle_list() {
  for entry in "$1"/* "$1"/.[!.]*; do
    if [ -h "$entry" ]; then
      printf 'l %s\n' "${entry#"$2"/}"
    elif [ -d "$entry" ]; then
      printf 'd %s\n' "${entry#"$2"/}"
      bundle_list "$entry" "$2"
    elif [ -f "$entry" ]; then
      printf 'f %s\n' "${entry#"$2"/}"
    fi
  done
}

# bundle_note writes into the file $3 what the bundle $1 holds, and of which archive (its digest $2) it came: of
# each entry its kind, inode, size and time, owner and mode, digest and path.
bundle_note() {
  rm -f "${3%/*}"/.bundle.*
  slip=$(mktemp "${3%/*}/.bundle.XXXXXX")
  {
    printf 'of %s\n' "$2"
    bundle_list "$1" "$1" | while read -r kind path; do
      sum=-
      [ "$kind" != f ] || sum=$(sha "$1/$path")
      printf '%s %s %s %s\n' "$kind" "$(stat -f '%i %z %m %u:%g:%Lp' "$1/$path")" "$sum" "$path"
    done
  } >"$slip"
  chmod 0644 "$slip"
  chown 0:0 "$slip"
  mv -f "$slip" "$3"
}
