#!/bin/sh
# Shows macfleet in simulated worlds: fleets are set up, broken and repaired, get a new
# version, join a tailnet and release a server, and a builder bakes an image. Checks every
# exit code. Works in a temporary folder, which is removed at the end.
set -eu

program=${1:?usage: demo.sh path/to/macfleet}
PATH=$(cd "$(dirname "$program")" && pwd):$PATH
examples=$(cd "$(dirname "$0")" && pwd)

# Variables of the shell that runs it, such as the tutorial's, must not reach macfleet.
for name in $(env | sed -nE 's/^((MACFLEET|SCW|GITHUB)_[A-Za-z0-9_]*|KUBECONFIG)=.*/\1/p'); do
  unset "$name"
done

folder=$(mktemp -d "${TMPDIR:-/tmp}/macfleet-demo.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cp -R "$examples/three-fleets" "$examples/builders" "$folder"
cd "$folder/three-fleets"
export MACFLEET_SANDBOX=1 MACFLEET_ENVIRONMENT=production
export MACFLEET_VAR_runners=4 MACFLEET_VAR_quiet_hours='["daily 00:00-24:00"]'

scene() {
  gap=
  printf '\n=== %s\n\n' "$*"
}

# run EXIT COMMAND... prints a command, runs it, and checks its exit code.
run() {
  begin "$@"
  shift
  macfleet "$@" || got=$?
  check
  gap='\n'
}

# brief is run, but shows only the last line.
brief() {
  begin "$@"
  shift
  macfleet "$@" >"$folder/output" || got=$?
  if [ "$got" = "$expected" ]; then tail -n 1 "$folder/output"; else cat "$folder/output"; fi
  check
}

# inject HOST INCIDENT breaks a host, which is named by its last characters.
inject() {
  begin 0 sandbox inject "$@"
  macfleet sandbox inject "$@" >"$folder/output"
}

begin() {
  expected=$1 got=0 note=
  shift
  [ "$expected" = 0 ] || note="   # exit $expected"
  printf "$gap"'$ macfleet %s%s\n' "$*" "$note"
  gap=
}

check() {
  if [ "$got" != "$expected" ]; then
    printf 'demo: exit %s, expected %s\n' "$got" "$expected" >&2
    exit 1
  fi
}

scene 'Three fleets from nothing: 8 servers of a pool of 16 become Nodes.'
brief 0 init cluster --auto-approve
run 0 plan
brief 0 apply --auto-approve
run 0 plan

scene 'A bad night: what changed outside macfleet? Exit code 2 means drift.'
inject 00c3b sleep-enabled
inject fba75 sealed-kcpassword
inject a10e2 renamed-by-hand
inject a1fe2 unreachable
run 2 drift

scene 'Repair it. One host stays unreachable until its cable is plugged in.'
run 3 apply --auto-approve
brief 0 sandbox heal a1fe2
brief 0 hosts --wait ready
run 0 drift

scene 'A new version of Tart: one canary per fleet, then waves.'
sed -i.old 's/2\.32\.1/2.34.0/' fleets.fleet.hcl
brief 0 artifacts lock --update
run 0 apply --auto-approve

scene 'Two hosts join the tailnet and leave it. Nothing of it stays on them.'
brief 0 apply --var tailnet=true --on fleet=macos --auto-approve
brief 0 apply --on fleet=macos --auto-approve
run 0 plan

scene 'One runner less: its server is drained, erased and back in the pool.'
run 0 apply --var runners=3 --auto-approve

scene 'Builders with Homebrew and Xcode: a workflow bakes an image there.'
cd "$folder/builders"
unset MACFLEET_ENVIRONMENT MACFLEET_VAR_runners MACFLEET_VAR_quiet_hours
brief 0 apply --auto-approve
run 0 sandbox bake 7aca1

scene 'Jobs lose the network by a reset of preferences. apply repairs it.'
inject 7aca1 local-network-denied
run 1 sandbox bake 7aca1
run 0 apply --auto-approve
brief 0 sandbox bake 7aca1
