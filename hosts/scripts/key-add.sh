# $1 is a public key, "type base64", and $2 its comment. Adds the key to the login user's
# authorized keys. The file is complete at any moment, also if the disk is full or the Mac
# loses its power.
set -e
dir=$HOME/.ssh
file=$dir/authorized_keys
if [ -L "$file" ]; then
  echo "$file is a symbolic link, and macfleet would replace the link" >&2
  exit 1
fi
if [ ! -d "$dir" ]; then
  mkdir "$dir"
  chmod 0700 "$dir"
fi
rm -f "$dir"/.macfleet.* # of a run that was killed here
old=
if [ -e "$file" ]; then
  while read -r type blob _ || [ -n "$type" ]; do
    if [ "$type $blob" = "$1" ]; then exit 0; fi
  done <"$file"
  old=$(cat "$file")
fi
want="${old:+$old
}$1 $2"
new=$(mktemp "$dir/.macfleet.XXXXXX")
trap 'rm -f "$new"' EXIT
if [ -e "$file" ]; then cp -p "$file" "$new"; else chmod 0600 "$new"; fi
printf '%s\n' "$want" >"$new"
if [ "$(cat "$new")" != "$want" ]; then
  echo "$file could not be written; it is unchanged" >&2
  exit 1
fi
sync
mv -f "$new" "$file"
sync
