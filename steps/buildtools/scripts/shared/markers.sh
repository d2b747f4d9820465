# outside prints the lines of $1 that are not between macfleet's markers.
outside() {
  inside=''
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      '# BEGIN macfleet') inside=yes ;;
      '# END macfleet') inside='' ;;
      *) [ -n "$inside" ] || printf '%s\n' "$line" ;;
    esac
  done <"$1"
}
