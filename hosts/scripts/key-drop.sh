# $1 is the fleet's public key, "type base64", which logged in this very connection. $2 is the
# previous one: every line that has it is removed from the files that sshd reads. Nothing is
# removed unless $1 has a line without options, which stays.
set -e
dir=$HOME/.ssh
rm -f "$dir"/.macfleet.* # of a run that was killed here
stays=
for file in "$dir/authorized_keys" "$dir/scw_authorized_keys"; do
  [ -e "$file" ] || continue
  while read -r type blob _ || [ -n "$type" ]; do
    if [ "$type $blob" = "$1" ]; then stays=yes; fi
  done <"$file"
done
if [ "$stays" != yes ]; then
  echo "no file of authorized keys lists the fleet's key, so the previous one stays" >&2
  exit 3
fi
for file in "$dir/authorized_keys" "$dir/scw_authorized_keys"; do
  [ -e "$file" ] || continue
  want='' has=''
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    '#'*) ;;
    *"${2#* }"*)
      has=yes
      continue
      ;;
    esac
    want="$want$line
"
  done <"$file"
  [ "$has" = yes ] || continue
  if [ -L "$file" ]; then
    echo "$file is a symbolic link, and macfleet would replace the link" >&2
    exit 1
  fi
  new=$(mktemp "$dir/.macfleet.XXXXXX")
  trap 'rm -f "$new"' EXIT
  cp -p "$file" "$new"
  printf '%s' "$want" >"$new"
  if [ "$(cat "$new" && printf x)" != "${want}x" ]; then
    echo "$file could not be written; it is unchanged" >&2
    exit 1
  fi
  sync
  mv -f "$new" "$file"
done
sync
