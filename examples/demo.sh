#!/bin/sh
# Shows macfleet in a simulated world: from an empty cluster and a pool of sixteen
# machines to thirteen Ready Nodes in three fleets, nine incidents and their repair,
# then fewer runners and as many as before, the tailnet, and builders that bake an
# image. Needs only the program, checks every exit code, and ends by itself. The
# worlds are deleted at the end; records and logs are kept in the folder it names.
set -eu

macfleet=${1:?usage: demo.sh path/to/macfleet}
here=$(cd "$(dirname "$0")" && pwd)
base=${TMPDIR:-/tmp}
world=$(mktemp -d "${base%/}/macfleet-demo.XXXXXX")
runs=$world.runs
trap 'rm -rf "$world"' EXIT

fleet() { "$macfleet" -C "$here/three-fleets" -e production --sandbox="$world/sandbox" --runs-dir "$runs" "$@"; }

# builders is fleet with another configuration and world, whose hosts are not Nodes.
builders() { "$macfleet" -C "$here/builders" --sandbox="$world/builders" --runs-dir "$runs" "$@"; }
of=fleet

title() { printf '=== %s\n\n' "$*"; }

# run EXIT COMMAND... prints a command, runs it, and checks its exit code.
run() {
  expected=$1
  shift
  printf '$ macfleet %s\n' "$*"
  got=0
  "$of" "$@" || got=$?
  printf '(exit %s)\n\n' "$got"
  if [ "$got" != "$expected" ]; then
    printf 'demo: exit %s was expected\n' "$expected" >&2
    exit 1
  fi
}

# inject FLEET N INCIDENT breaks a fleet's Nth member.
inject() {
  host=$(fleet hosts -o name --on "fleet=$1" | sed -n "$2p")
  printf '$ macfleet sandbox inject %s %s\n' "$host" "$3"
  fleet sandbox inject "$host" "$3" >/dev/null
}

title 'Prepare the cluster: an SSH key, accounts and roles.'
run 0 init cluster --auto-approve

title 'Apply: 13 hosts from a pool of 16 become Nodes. Each one is observed again to verify it.'
run 0 apply --auto-approve

title 'Nothing is left to do.'
run 0 plan
run 0 hosts

title 'A bad night: nine incidents.'
inject runners 1 sleep-enabled
inject runners 2 hostname-edited
inject runners 3 marker-missing
inject runners 4 foreign-marker
inject runners 5 token-revoked
inject runners 6 stale-binary-running
inject builders 1 renamed-by-hand
inject builders 2 unreachable
inject macos 1 wrong-host-key

title 'What changed outside macfleet? Exit code 2 means drift.'
run 2 drift

title 'Repair what can be repaired, skip the rest and say what to do. Exit code 3: not everything is done.'
run 3 apply --auto-approve

title 'Someone plugs the cable in again and finds out who owns the fourth runner.'
run 0 sandbox heal

title 'All is well.'
run 0 drift
run 0 hosts --wait ready

title 'Someone deletes a builder at GitHub: its runner stops for good, and no image is baked there.'
inject builders 2 runner-deregistered
run 2 drift --on fleet=builders
run 0 apply --auto-approve
run 0 plan

title 'Three runners instead of nine: six servers are released. One run wipes one host, unless it may wipe more.'
run 0 plan --var runners=3 --outside-windows
run 0 apply --var runners=3 --outside-windows --max-wipes 6 --auto-approve

title 'They were drained, erased and verified, and are in the pool again. Nothing is left to do.'
run 0 plan --var runners=3

title 'Nine runners again: six servers of the pool are claimed.'
run 0 apply --auto-approve
run 0 plan

title 'The tailnet is turned on: hosts join it, and their metrics are served only there.'
run 0 apply --var tailnet=true --auto-approve
run 0 plan --var tailnet=true

title 'And off again: hosts leave, their devices are deleted, and nothing of it is left.'
run 0 apply --auto-approve
run 0 plan

title 'Builders with packer, Homebrew, Xcode and the local network: from the pool to a runner that takes jobs.'
of=builders
run 0 apply --auto-approve
run 0 plan
builder=$(builders hosts -o name | head -n 1)

title 'A workflow bakes an image there and pushes it.'
run 0 sandbox bake "$builder"

title 'A reset of its preferences takes the network away from jobs: the bake fails, and the plan says why.'
builders sandbox inject "$builder" local-network-denied >/dev/null
run 1 sandbox bake "$builder"
run 2 drift

title 'Repaired, with a restart of the idle host. The bake runs through.'
run 0 apply --auto-approve
run 0 sandbox bake "$builder"

printf 'Records and logs of this demo: %s\n' "$runs"
