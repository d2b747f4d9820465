#!/bin/sh
# Tells macfleet's story in a simulated world: from an empty cluster and a pool of
# sixteen machines to thirteen Ready Nodes in three fleets, and through nine
# incidents. Needs only the program, checks every exit code, and ends by itself.
set -eu

macfleet=${1:?usage: demo.sh path/to/macfleet}
here=$(cd "$(dirname "$0")" && pwd)
world=$(mktemp -d "${TMPDIR:-/tmp}/macfleet-demo.XXXXXX")
trap 'rm -rf "$world"' EXIT

fleet() { "$macfleet" -C "$here/three-fleets" -e production --sandbox="$world/sandbox" --runs-dir "$world/runs" "$@"; }

tell() { printf '\n\n=== %s\n\n' "$*"; }

# run WANTED-EXIT COMMAND... shows a command, runs it, and insists on its exit code.
run() {
  wanted=$1
  shift
  printf '$ macfleet %s\n' "$*"
  got=0
  fleet "$@" || got=$?
  printf '(exit %s)\n\n' "$got"
  if [ "$got" != "$wanted" ]; then
    printf 'demo: exit %s was wanted\n' "$wanted" >&2
    exit 1
  fi
}

# host FLEET N prints the name of a fleet's Nth member.
host() { fleet hosts -o name --on "fleet=$1" | sed -n "$2p"; }

tell 'Prepare the cluster: an SSH key, and the rights of the hosts and of macfleet.'
run 0 init cluster --auto-approve

tell 'What would change? A plan changes nothing.'
run 0 plan

tell 'Apply it: 13 hosts from a pool of 16 become Nodes, and each is verified by observing it again.'
run 0 apply --auto-approve

tell 'A second plan: one line.'
run 0 plan
run 0 hosts

tell 'A bad night.'
run 0 sandbox inject "$(host runners 1)" sleep-enabled
run 0 sandbox inject "$(host runners 2)" hostname-edited
run 0 sandbox inject "$(host runners 3)" marker-missing
run 0 sandbox inject "$(host runners 4)" foreign-marker
run 0 sandbox inject "$(host runners 5)" token-revoked
run 0 sandbox inject "$(host runners 6)" stale-binary-running
run 0 sandbox inject "$(host builders 1)" renamed-by-hand
run 0 sandbox inject "$(host builders 2)" unreachable
run 0 sandbox inject "$(host macos 1)" wrong-host-key

tell 'What changed outside macfleet? Exit code 2 is drift.'
run 2 drift

tell 'Repair what can be repaired, refuse the rest and say what to do. Exit code 3.'
run 3 apply --auto-approve

tell 'A person plugs the cables in again and finds out who owns the host.'
run 0 sandbox heal

tell 'All is well.'
run 0 drift
run 0 hosts --wait ready
