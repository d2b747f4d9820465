# Standard input holds a mark, the digest, the mode, the owner, the length of the
# path and the path, and then the file itself.
read -r mark && read -r digest && read -r mode && read -r owner && read -r length || exit 91
path=$(dd bs=1 count="$length" 2>/dev/null; printf x)
path=${path%x}
printf '\n%s host %s\n\n%s begin upload\n' "$mark" "$(id -u)" "$mark"
printf '\n%s begin upload\n' "$mark" >&2
new=
done_with() {
  status=$1
  if [ -n "$new" ]; then rm -f "$new"; fi
  printf '\n%s end %s\n\n%s done\n' "$mark" "$status" "$mark"
  printf '\n%s end %s\n' "$mark" "$status" >&2
  exit 0
}
if [ "$(id -u)" != 0 ]; then done_with needs-root; fi
dir=${path%/*} base=${path##*/}
if [ -d "$path" ] || [ ! -d "$dir/" ]; then
  echo "$path is a folder, or its folder is not there" >&2
  done_with 1
fi
rm -f "$dir/.macfleet-upload.$base".*
new=$(mktemp "$dir/.macfleet-upload.$base.XXXXXX") || done_with 1
# A text that replaces the file's bytes in place would spoil a program that runs:
# the kernel keeps what it knows of a signature with the inode.
cat >"$new" || done_with 1
got=$(shasum -a 256 <"$new")
if [ "${got%% *}" != "$digest" ]; then
  echo "the bytes that arrived have the SHA-256 ${got%% *}, not $digest" >&2
  done_with 3
fi
if ! { chown "$owner" "$new" && chmod "$mode" "$new" && sync && mv -f "$new" "$path"; }; then
  done_with 1
fi
new=
sync
done_with 0
