# list_processes sets all to the processes that may be virtual machines, builds or the kubelet, one per line, and
# code to the exit code of ps.
list_processes() {
  code=0
  said=$(ps -axwwo pid=,ppid=,etime=,command=) || code=$?
  all=''
  while IFS= read -r line; do
    case $line in *tart* | *packer* | *Runner.Worker* | */_update.sh* | *xcodebuild*) all="$all$line
" ;; esac
  done <<EOF
$said
EOF
}

# show_work lists the processes that run or build virtual machines: pid, verb and the machine's name. It also lists
# the jobs of GitHub's runner, which runs Runner.Worker for each, its updates, and builds of Xcode. The rest of their command lines
# may be secret.
show_work() {
  while read -r pid _ _ whole; do
    # The folder of a runner may have spaces in its name. An update of the runner replaces its programs.
    case $whole in
      *'/Runner.Worker spawnclient '*) printf '%s Runner.Worker\n' "$pid" && continue ;;
      *'/_update.sh'*) printf '%s runner-update\n' "$pid" && continue ;;
    esac
    read -r program verb first second _ <<WHOLE
$whole
WHOLE
    case $first in -*) first=$second ;; esac
    case ${program##*/} in
      tart) case $verb in run | push | pull | clone | create | import | export) printf '%s %s %s\n' "$pid" "$verb" "$first" ;; esac ;;
      packer) printf '%s packer %s\n' "$pid" "$verb" ;;
      Runner.Worker | xcodebuild) printf '%s %s\n' "$pid" "${program##*/}" ;;
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
