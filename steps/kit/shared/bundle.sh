# bundle_noted succeeds where the note $1 is whole, and of the archive with the digest $2: no line of it was lost.
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

# bundle_differs shows what is not as the note $2 says, of the bundle $1 in the survey. What was added, such as by
# Finder, is not looked for. A file is read only where its inode, size or time is another one; times and inodes of
# folders say nothing.
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
