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

# known_by prints by what the entry $1 of an unpacked bundle, of the kind $2 and the digest $3, is known again where
# it is installed as $4: inode, size and time of what is installed, as long as that is the same.
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

# bundle_note writes into the file $3 what the unpacked bundle $1 holds, and of which archive (its digest $2) it came:
# of each entry its kind, inode, size and time where it is installed in $4, owner and mode, digest and path. The last
# line says how many they are.
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
