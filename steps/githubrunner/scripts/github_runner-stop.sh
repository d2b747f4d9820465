# Uses: put service work agent
# Stops the runner and deletes its registration on the host, before it is registered again.
# $1 the login user, $2 the runner's folder, $3 "force" to ignore a job that runs, $4… labels of jobs to take out of
# launchd; a label with a "-" in front also loses its property list.
set -e
user=$1 root=$2 force=$3
shift 3
idle_or_leave "$force"
begin github_runner
for label in "$@"; do
  depart "$user" "${label#-}"
  case $label in -*) rm -f "/Users/$user/Library/LaunchAgents/${label#-}.plist" ;; esac
done
# With the refreshed copies or the old key left, the old identity would come back.
for name in .runner .runner_migrated .credentials .credentials_migrated .credentials_rsaparams .service; do
  rm -f "$root/$name"
done
sync
