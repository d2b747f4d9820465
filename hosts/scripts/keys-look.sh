# $1 is the fleet's public key, "type base64", and $2 its previous one. Prints "current" or
# "previous" for each line that has one of them in the files that sshd reads.
set -e
for file in "$HOME/.ssh/authorized_keys" "$HOME/.ssh/scw_authorized_keys"; do
  [ -e "$file" ] || continue
  while read -r line || [ -n "$line" ]; do
    case $line in
    '#'*) ;;
    *"${1#* }"*) echo current ;;
    *"${2#* }"*) echo previous ;;
    esac
  done <"$file"
done
