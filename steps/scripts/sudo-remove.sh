# Removes the drop-in only if passwordless sudo works without it. sudo ignores names with a
# dot, so the renamed file has no effect and can be restored; the restoring shell is root
# already. A killed run may have left the file renamed.
sudo -n /bin/sh -c 'set -e
user=$1
kept=/etc/sudoers.d/.macfleet.kept
[ ! -e /etc/sudoers.d/macfleet ] || mv -f /etc/sudoers.d/macfleet "$kept"
if sudo -n -u "$user" sudo -k -n true </dev/null 2>/dev/null; then
  rm -f "$kept"
else
  [ ! -e "$kept" ] || mv -f "$kept" /etc/sudoers.d/macfleet
  echo "passwordless sudo does not work without /etc/sudoers.d/macfleet, so the file stays; set it up another way, or keep the sudo block" >&2
  exit 1
fi' sh "$(id -un)" </dev/null
