# say ends a part of an answer with its name, an exit code and what it is of.
say() { printf '\n== %s\n' "$*"; }

# file shows a file and who may touch it.
file() {
  [ -f "$1" ] || return 0
  cat "$1"
  say "file $? $(stat -f '%u:%g:%Lp' "$1") $1"
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
