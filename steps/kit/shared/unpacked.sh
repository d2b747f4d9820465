# bundle_list prints the entries of the folder $1, one per line: f, d or l, and the path below $2.
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

# known_by prints the stamp (inode, size, time, owner and mode) of the entry $1 of an unpacked bundle with the kind $2
# and the digest $3. If the installed entry $4 is identical, its stamp is used.
known_by() {
  from=$1
  if [ "$1" != "$4" ]; then
    case $2 in
      f) [ -h "$4" ] || [ ! -f "$4" ] || [ "$(sha "$4")" != "$3" ] || from=$4 ;;
      l) [ ! -h "$4" ] || [ "$(readlink "$4")" != "$(readlink "$1")" ] || from=$4 ;;
    esac
  fi
  printf '%s %s\n' "$(stat -f '%i %z %m' "$from")" "$(stat -f '%u:%g:%Lp' "$1")"
}

# bundle_note writes the manifest $3 of the unpacked bundle $1 from the archive with the digest $2: per entry the kind,
# the stamp where it is installed in $4, digest and path. The last line has the number of entries.
bundle_note() {
  rm -f "${3%/*}"/.bundle.*
  slip=$(mktemp "${3%/*}/.bundle.XXXXXX")
  {
    printf 'of %s\n' "$2"
    bundle_list "$1" "$1" | {
      entries=0
      while read -r kind path; do
        sum=-
        [ "$kind" != f ] || sum=$(sha "$1/$path")
        printf '%s %s %s %s\n' "$kind" "$(known_by "$1/$path" "$kind" "$sum" "$4/$path")" "$sum" "$path"
        entries=$((entries + 1))
      done
      printf 'end %s\n' "$entries"
    }
  } >"$slip"
  chmod 0644 "$slip"
  chown 0:0 "$slip"
  mv -f "$slip" "$3"
}
