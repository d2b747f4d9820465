# What earlier runs left behind, a line each.
for token in /etc/macfleet/pending/*; do
  [ ! -e "$token" ] || printf 'pending %s\n' "${token##*/}"
done
say() {
  [ -f "$2" ] || return 0
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%s %s\n' "$1" "$line"
  done <"$2"
}
say undone /etc/macfleet/undo/undone
say refused "$HOME/.macfleet/refused"
