# What each experiment begins with. $1 is the login user, the rest is the experiment's own. All that is made lies
# in one folder, so that restore.sh finds it, also after an experiment that was cut off.
PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
user=$1
shift
home=/usr/local/lib/macfleet-conformance
label=dev.macfleet.conformance
plist=/Library/LaunchDaemons/$label.plist
vm=macfleet-conformance
cd / || exit 1
mkdir -p "$home" || exit 1
say() { printf '%s: %s\n' "$1" "$2"; }
as_user() { sudo -n -H -u "$user" "$@"; }
references() { pfctl -s References 2>/dev/null | grep -c '[0-9][0-9]* *[0-9]' || :; }
points() { { pfctl -sr; pfctl -sn; } 2>/dev/null | grep -c 'com.apple.internet-sharing' || :; }
