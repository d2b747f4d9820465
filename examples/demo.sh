#!/bin/sh
# Tells macfleet's story in a simulated world: from an empty cluster and a pool
# of sixteen machines to three converged fleets, through seven incidents, and two
# Nodes of a Kubernetes cluster. Needs nothing but the program, and ends by itself.
set -eu

macfleet=${1:?usage: demo.sh path/to/macfleet}
here=$(cd "$(dirname "$0")" && pwd)
world=$(mktemp -d "${TMPDIR:-/tmp}/macfleet-demo.XXXXXX")
trap 'rm -rf "$world"' EXIT

example=three-fleets
MACFLEET_ENVIRONMENT=production
export MACFLEET_ENVIRONMENT

fleet() { "$macfleet" -C "$here/$example" --sandbox="$world/$example" "$@"; }

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

tell 'What would change? Looking changes nothing.'
run 0 plan

tell 'Make it so: 13 hosts from a pool of 16, each proven by looking again.'
run 0 apply --auto-approve

tell 'A second look: one line.'
run 0 plan
run 0 hosts

tell 'A bad night.'
run 0 sandbox inject "$(host runners 1)" sleep-enabled
run 0 sandbox inject "$(host runners 2)" hostname-edited
run 0 sandbox inject "$(host runners 3)" marker-missing
run 0 sandbox inject "$(host runners 4)" foreign-marker
run 0 sandbox inject "$(host builders 1)" renamed-by-hand
run 0 sandbox inject "$(host builders 2)" unreachable
run 0 sandbox inject "$(host macos 1)" wrong-host-key

tell 'What changed behind our back? Exit 2 is drift.'
run 2 drift

tell 'Repair what can be repaired, refuse the rest and say what to do. Exit 3.'
run 3 apply --auto-approve

tell 'Somebody plugs the cables in again and finds out whose host it is.'
run 0 sandbox heal

tell 'All is well.'
run 0 drift

tell 'Another fleet: two Macs that become Nodes of a Kubernetes cluster, where each Pod is a virtual machine.'
example=nodes
MACFLEET_ENVIRONMENT=
MACFLEET_VAR_runners=2
MACFLEET_ON=fleet=runners
export MACFLEET_VAR_runners MACFLEET_ON
run 0 init cluster --auto-approve
run 0 apply --auto-approve
run 0 hosts

tell 'The cluster forgets one, and the other runs a kubelet that is not the one on its disk.'
run 0 sandbox inject "$(fleet hosts -o name | sed -n 1p)" token-revoked
run 0 sandbox inject "$(fleet hosts -o name | sed -n 2p)" stale-binary-running
run 2 drift
run 0 apply --auto-approve
run 0 hosts --wait ready
