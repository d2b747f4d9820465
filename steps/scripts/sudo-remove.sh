# The drop-in goes only where root is to be had without it. sudo ignores a name
# with a dot, so the renamed file has no effect and can come back; what brings it
# back is root already. A run that was killed in between may have renamed it.
sudo -n /bin/sh -c 'set -e
user=$1
kept=/etc/sudoers.d/.macfleet.kept
[ ! -e /etc/sudoers.d/macfleet ] || mv -f /etc/sudoers.d/macfleet "$kept"
if sudo -n -u "$user" sudo -k -n true </dev/null 2>/dev/null; then
  rm -f "$kept"
else
  [ ! -e "$kept" ] || mv -f "$kept" /etc/sudoers.d/macfleet
  echo "without /etc/sudoers.d/macfleet nobody here becomes root without a password, so it stays; set that up otherwise, or leave the sudo block" >&2
  exit 1
fi' sh "$(id -un)" </dev/null
