# $1 is the id of a run that is done with this host: waiting runs may continue.
for file in /etc/macfleet/runs/*; do
  n=${file##*/}
  case $n in '' | *[!0-9]*) continue ;; esac
  read -r holder _ <"$file" || :
  if [ "$holder" = "$1" ]; then : >"$file.left"; fi
done
