# $1 is one of our files, as a name in our folder.
dir=/etc/macfleet
file=$dir/$1
if [ -e "$file" ] || [ -L "$file" ]; then
  exec cat "$file"
fi
# It is absent only where the folder is absent, or lets us look.
[ -e "$dir" ] || [ -L "$dir" ] || exit 4
[ ! -d "$dir" ] || [ ! -x "$dir" ] || exit 4
echo "only root can read $dir, or it is not a directory" >&2
exit 1
