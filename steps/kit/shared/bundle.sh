# bundle_noted succeeds if the manifest $1 is complete and belongs to the archive with the digest $2.
bundle_noted() {
  [ -f "$1" ] || return 1
  entries=-1
  while read -r kind what _ _ _ _ path; do
    case $kind in
      of) [ "$entries$what" = "-1$2" ] || return 1 ;;
      f | d | l) [ -n "$path" ] || return 1 ;;
      end)
        [ "$entries" -gt 0 ] && [ "$what" = "$entries" ]
        return
        ;;
      *) return 1 ;;
    esac
    entries=$((entries + 1))
  done <"$1"
  return 1
}

# bundle_differs lists how the surveyed bundle $1 differs from the manifest $2. Added files, such as Finder's, are
# ignored. A file is read only if its inode, size or time changed; those of folders are ignored.
bundle_differs() {
  [ ! -h "$1" ] || printf '. is a link\n'
  while read -r kind i z m mode sum path; do
    [ -n "$path" ] || continue
    at=$1/$path
    about "$at"
    now=-
    if [ -h "$at" ]; then now=l; elif [ -d "$at" ]; then now=d; elif [ -f "$at" ]; then now=f; fi
    if [ -z "$stamp" ]; then
      printf '%s is missing\n' "$path"
    elif [ "$kind" != "$now" ]; then
      printf '%s is of another kind\n' "$path"
    elif [ "$kind" != l ] && [ "$access" != "$mode" ]; then
      printf '%s is %s\n' "$path" "$named"
    elif [ "$kind" = l ] && [ "$stamp" != "$i $z $m" ]; then
      printf '%s is another link\n' "$path"
    elif [ "$kind" = f ] && [ "$stamp" != "$i $z $m" ] && [ "$(sha "$at")" != "$sum" ]; then
      printf '%s is edited\n' "$path"
    fi
  done <"$2"
}
