# Uses: put tart
# Writes the wrapper by which tart is run, and takes away what an unfinished run left. $1 is its text.
set -e
begin tart
mkdir -p /usr/local/bin
put /usr/local/bin/tart "$1" 0755
restore
sweep
sync
