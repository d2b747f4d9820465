# Uses: put service work agent
# Installs the runner's programs, while it is stopped. $1 the login user, $2 the runner's folder, $3 the archive, $4 its
# version, $5 "force" to ignore a job that runs.
set -e
user=$1 root=$2 archive=$3 version=$4
idle_or_leave "$5"
begin github_runner
mkdir -p "$root"
chown "$user:staff" "$root"
rm -rf "$root"/.macfleet.*
new=$(mktemp -d "$root/.macfleet.XXXXXX")
trap 'rm -rf "$new"' EXIT
tar -xzf "$archive" -C "$new"
if ! [ -s "$new/bin/runsvc.sh" ] || ! [ -x "$new/bin/Runner.Listener" ] || ! [ -s "$new/config.sh" ]; then
  echo "the archive of runner $version lacks bin/runsvc.sh, bin/Runner.Listener or config.sh; check sha256 and version in the github_runner block" >&2
  exit 1
fi
chown -R "$user:staff" "$new"
# After its own updates, bin and externals are links to folders of a version.
rm -rf "$root"/bin.[0-9]* "$root"/externals.[0-9]*
# Whether the programs are complete is judged by bin, so it comes last.
mv "$new/bin" "$new/.bin"
for path in "$new"/* "$new/.bin"; do
  name=${path##*/}
  rm -rf "${root:?}/${name#.}"
  mv "$path" "$root/${name#.}"
done
if [ -f "$root/runsvc.sh" ]; then
  cp "$root/bin/runsvc.sh" "$root/runsvc.sh"
  chown "$user:staff" "$root/runsvc.sh"
fi
sync
