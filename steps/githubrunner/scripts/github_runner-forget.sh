# Deletes what the runner left on the host. $1 its folder, $2 "whole" if macfleet installed it.
set -e
root=$1
if [ "$2" = whole ]; then
  rm -rf "${root:?}"
else
  rm -rf "$root"/.macfleet.*
  for name in .runner .runner_migrated .credentials .credentials_migrated .credentials_rsaparams .service; do
    rm -f "$root/$name"
  done
fi
rm -f /usr/local/lib/macfleet/github_runner.receipt
sync
