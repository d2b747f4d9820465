# list_processes sets all to the processes that may be virtual machines, their makers or their agent, a line
# each, and code to how ps ended.
list_processes() {
  code=0
  said=$(ps -axwwo pid=,ppid=,etime=,command=) || code=$?
  all=''
  while IFS= read -r line; do
    case $line in *tart* | *packer*) all="$all$line
" ;; esac
  done <<EOF
$said
EOF
}

# show_work lists, of these, the processes of virtual machines and of those who make them, a line each: the
# pid, what it does, and the machine's name. What else stands on their command lines may be secret.
show_work() {
  while read -r pid _ _ program verb first second _; do
    case $first in -*) first=$second ;; esac
    case ${program##*/} in
      tart) case $verb in run | push | pull | clone | create | import | export) printf '%s %s %s\n' "$pid" "$verb" "$first" ;; esac ;;
      packer) printf '%s packer %s\n' "$pid" "$verb" ;;
    esac
  done <<EOF
$all
EOF
}

work() {
  list_processes
  [ "$code" = 0 ] || return "$code"
  show_work
}
