# work lists the processes of virtual machines and of those who make them, a line each: the pid, what it
# does, and the machine's name. What else stands on their command lines may be secret.
work() {
  all=$(ps -axwwo pid=,command=) || return
  printf '%s\n' "$all" | while read -r pid program verb first second _; do
    case $first in -*) first=$second ;; esac
    case ${program##*/} in
      tart) case $verb in run | push | pull | clone | create | import | export) printf '%s %s %s\n' "$pid" "$verb" "$first" ;; esac ;;
      packer) printf '%s packer %s\n' "$pid" "$verb" ;;
    esac
  done
}
