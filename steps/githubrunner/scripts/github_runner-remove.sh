# Uses: put service work agent
# Takes the runner's job out of launchd, for good. $1 the login user, $2 "force" to ignore a job that runs, $3… labels.
set -e
user=$1
idle_or_leave "$2"
shift 2
mkdir -p /etc/macfleet/pending
: >/etc/macfleet/pending/github_runner
for label in "$@"; do
  depart "$user" "$label" list
  rm -rf "/Users/${user:?}/Library/Logs/${label:?}"
done
sync
