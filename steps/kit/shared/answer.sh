# say ends a part of an answer with its name, an exit code and its subject.
say() { printf '\n== %s\n' "$*"; }

# survey runs one stat for all existing paths. Per path one line: inode, size and modification time | change
# time | owner, group and mode in numbers | the same with names | path.
survey() {
  for path in "$@"; do
    shift
    [ ! -e "$path" ] || set -- "$@" "$path"
  done
  found=''
  [ $# = 0 ] || found=$(stat -f '%i %z %m|%c|%u:%g:%Lp|%Su:%Sg:%Lp|%N' "$@")
}

# about sets stamp, changed, access and named from the survey of a path; empty if it does not exist.
about() {
  stamp='' changed='' access='' named=''
  while IFS='|' read -r one two three four five; do
    if [ "$five" = "$1" ]; then stamp=$one changed=$two access=$three named=$four; fi
  done <<EOF
$found
EOF
}

# file prints a surveyed file with its owner and mode.
file() {
  [ -f "$1" ] || return 0
  about "$1"
  cat "$1"
  say "file $? $access $1"
}

# show_receipt prints the surveyed receipt of the step $1.
show_receipt() {
  [ -f "$receipts/$1.receipt" ] || return 0
  about "$receipts/$1.receipt"
  while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done <"$receipts/$1.receipt"
  say "file 0 $access $receipts/$1.receipt"
}

# kept lists the digests of the artifacts on the host.
kept() {
  for path in /usr/local/lib/macfleet/artifacts/*; do
    [ ! -f "$path" ] || printf '%s\n' "${path##*/}"
  done
  say "kept 0"
}

# room prints the last line of df: the free space.
room() {
  code=0
  said=$(df -k /) || code=$?
  while read -r line; do last=$line; done <<EOF
$said
EOF
  printf '%s\n' "$last"
  say "space $code"
}
