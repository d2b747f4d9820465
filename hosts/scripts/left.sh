# Prints what earlier runs left behind, one per line.
for token in /etc/macfleet/pending/*; do
  [ ! -e "$token" ] || printf 'pending %s\n' "${token##*/}"
done
say() {
  [ -f "$2" ] || return 0
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%s %s\n' "$1" "$line"
  done <"$2"
}
# An unconfirmed change: the seconds that are left, and its step.
for armed in /etc/macfleet/undo/armed.* /etc/macfleet/undo/undoing.*; do
  [ -d "$armed" ] || continue
  deadline=0 step=
  if [ -r "$armed/deadline" ] && [ -r "$armed/step" ]; then
    read -r deadline <"$armed/deadline" || :
    read -r step <"$armed/step" || :
  fi
  printf 'armed %s %s\n' "$((deadline - $(date +%s)))" "$step"
done
say undone /etc/macfleet/undo/undone
say refused "$HOME/.macfleet/refused"
# The run that entered last: its epoch, and its age and that of its last command.
for file in /etc/macfleet/runs/*; do
  n=${file##*/}
  case $n in '' | *[!0-9]*) continue ;; esac
  left=no heard=
  if [ -e "$file.left" ]; then left=yes; fi
  if [ -f "$file.seen" ]; then read -r heard <"$file.seen" || :; fi
  read -r run keeper at who <"$file" || :
  printf 'run %s %s %s %s %s %s %s %s\n' "$n" "$keeper" "$at" "${heard:-$at}" "$(date +%s)" "$left" "$run" "$who"
done
