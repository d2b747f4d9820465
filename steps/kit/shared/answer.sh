# say ends a part of an answer with its name, an exit code and what it is of.
say() { printf '\n== %s\n' "$*"; }

# survey looks at those of the paths that are there, in one process: a line each of the inode, size and time
# of the last write, of the time of the last change, of owner, group and mode in numbers and then in names,
# and of the path.
survey() {
  for path in "$@"; do
    shift
    [ ! -e "$path" ] || set -- "$@" "$path"
  done
  found=''
  [ $# = 0 ] || found=$(stat -f '%i %z %m|%c|%u:%g:%Lp|%Su:%Sg:%Lp|%N' "$@")
}

# about sets what the survey found of a path, nothing where it is not there.
about() {
  stamp='' changed='' access='' named=''
  while IFS='|' read -r one two three four five; do
    if [ "$five" = "$1" ]; then stamp=$one changed=$two access=$three named=$four; fi
  done <<EOF
$found
EOF
}

# file shows a file of the survey and who may touch it.
file() {
  [ -f "$1" ] || return 0
  about "$1"
  cat "$1"
  say "file $? $access $1"
}

# show_receipt shows the receipt of the step $1, which is in the survey.
show_receipt() {
  [ -f "$receipts/$1.receipt" ] || return 0
  about "$receipts/$1.receipt"
  while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done <"$receipts/$1.receipt"
  say "file 0 $access $receipts/$1.receipt"
}

# kept lists the artifacts that the host keeps, by their digests.
kept() {
  for path in /usr/local/lib/macfleet/artifacts/*; do
    [ ! -f "$path" ] || printf '%s\n' "${path##*/}"
  done
  say "kept 0"
}

# room shows the free space of the disk: the last line of df.
room() {
  code=0
  said=$(df -k /) || code=$?
  while read -r line; do last=$line; done <<EOF
$said
EOF
  printf '%s\n' "$last"
  say "disk $code"
}
