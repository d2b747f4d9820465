#!/bin/sh
# Draws docs/images/plan.svg: a plan on a terminal, of the example's canary environment with
# a new version of Tart and incidents. make pictures runs it, from the root of the repository.
set -eu

macfleet=$PWD/bin/macfleet
picture=$PWD/bin/picture
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r examples/three-fleets/. "$folder"
export MACFLEET_DIRECTORY="$folder" MACFLEET_ENVIRONMENT=canary MACFLEET_SANDBOX="$folder/world" MACFLEET_RUNS_DIR="$folder/runs"

{
  "$macfleet" init cluster --auto-approve
  "$macfleet" apply --auto-approve
  "$macfleet" sandbox inject fba75 sealed-kcpassword
  "$macfleet" sandbox inject 2ab66 kubelet-crash-loop
  "$macfleet" sandbox inject 7622a disk-full
  "$macfleet" sandbox inject 00c3b unreachable
  perl -pi -e 's/2\.32\.1/2.34.0/' "$folder/fleets.fleet.hcl"
  "$macfleet" artifacts lock --update
} >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
"$picture" -columns 110 -title 'macfleet plan' "$macfleet" plan 2>/dev/null >"$folder/plan.svg"
mv "$folder/plan.svg" docs/images/plan.svg
