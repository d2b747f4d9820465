# Uses: put service work agent
# Stops the runner before its job or its programs are replaced, or before it is registered again.
# $1 the login user, $2 the runner's folder, $3 "force" to ignore a job that runs, $4 "forget" to delete its registration on
# the host, $5 the label of its job, $6… other labels of it, whose property lists are deleted.
set -e
user=$1 root=$2 forget=$4 label=$5
idle_or_leave "$3"
begin github_runner
depart "$user" "$label"
shift 5
for old in "$@"; do depart "$user" "$old" list; done
# With the refreshed copies or the old key left, the old identity would come back.
if [ "$forget" = forget ]; then
  for name in .runner .runner_migrated .credentials .credentials_migrated .credentials_rsaparams .service; do
    rm -f "$root/$name"
  done
fi
sync
