# $1 is the folder of artifacts. Removes artifacts that no receipt next to them names, and
# parts of interrupted deliveries, unless they are at most $2 seconds old: a run may be using them.
dir=$1 age=$2
if [ ! -d "$dir" ]; then exit; fi
named=
for receipt in "${dir%/*}"/*.receipt; do
  if [ -f "$receipt" ]; then named="$named $(cat "$receipt")" || exit 1; fi
done
now=$(date +%s)
for file in "$dir"/* "$dir"/.[0-9a-f]*; do
  if [ ! -f "$file" ]; then continue; fi
  base=${file##*/}
  # A part's name is its artifact's digest between dots; macfleet makes no other file here.
  case $base in
  .*.*) ;;
  *)
    if [ "${#base}" != 64 ]; then continue; fi
    case $named in *"$base"*) continue ;; esac ;;
  esac
  changed=$(stat -f %m "$file") || continue
  if [ $((now - changed)) -gt "$age" ]; then rm -f "$file"; fi
done
