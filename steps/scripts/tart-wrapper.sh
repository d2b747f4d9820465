# Uses: put tart
# Writes the wrapper that runs tart ($1 is its text), and cleans up after an unfinished run.
set -e
begin tart
mkdir -p /usr/local/bin
put /usr/local/bin/tart "$1" 0755
restore
sweep
sync
