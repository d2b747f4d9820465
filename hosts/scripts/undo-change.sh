# $1 is the id, $2 the seconds that the change may take, $3 its script; then the
# script's own arguments. The answer is kept: the change may cut the line.
armed=/etc/macfleet/undo/armed.$1
left=$(($(cat "$armed/deadline") - $(date +%s)))
# It must be at its end when it may be taken back, or it would have the last word.
if [ "$left" -le "$2" ] || [ ! -d "$armed" ]; then
  echo "too late to begin: only $left s are left to confirm it" >&2
  exit 75
fi
script=$3
shift 3
/bin/sh -c "$script" sh "$@" >"$armed/stdout" 2>"$armed/stderr"
code=$?
printf '%s\n' "$code" >"$armed/exit.new" && mv -f "$armed/exit.new" "$armed/exit"
cat "$armed/stdout"
cat "$armed/stderr" >&2
exit "$code"
