# $1 is the folder of artifacts. Removes what no receipt beside it names and what
# is left of broken deliveries, unless it is younger than a day: a run may be at it.
dir=$1
if [ ! -d "$dir" ]; then exit; fi
named=
for receipt in "${dir%/*}"/*.receipt; do
  if [ -f "$receipt" ]; then named="$named $(cat "$receipt")" || exit 1; fi
done
now=$(date +%s)
for file in "$dir"/* "$dir"/.[0-9a-f]*; do
  if [ ! -f "$file" ]; then continue; fi
  base=${file##*/}
  # A part is its artifact's digest between dots; nothing else is ours.
  case $base in
  .*.*) ;;
  *)
    if [ "${#base}" != 64 ]; then continue; fi
    case $named in *"$base"*) continue ;; esac ;;
  esac
  changed=$(stat -f %m "$file") || continue
  if [ $((now - changed)) -gt 86400 ]; then rm -f "$file"; fi
done
