# bundle_differs shows what is not as the note $2 says, of the bundle $1 in the survey: nothing where the note is of
# another archive than $3. What was added, such as by Finder, is not looked for. A file is read only where
# its inode, size or time is another one; times and inodes of folders say nothing.
bundle_differs() {
  read -r _ of <"$2"
  [ "$of" = "$3" ] || return 0
  [ ! -h "$1" ] || printf '. is a link\n'
  while read -r kind i z m mode sum path; do
    [ "$kind" != of ] || continue
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
