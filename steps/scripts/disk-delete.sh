# Uses: work
# Deletes virtual machines that do not run. $@ their names.
set -e
work_running=$(work) || exit 1
case $work_running in *' push '* | *' packer '* | *' clone '* | *' export '*)
  echo "a push or a build started meanwhile: $work_running" >&2
  exit 1
  ;;
esac
exec /bin/sh -c 'exec "$@"' sh /usr/local/bin/tart delete "$@"
