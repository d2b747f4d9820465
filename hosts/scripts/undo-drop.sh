# $1 is the id of a change that was confirmed and that outlives a boot now.
rm -rf "/etc/macfleet/undo/confirmed.$1" "/etc/macfleet/undo/queue/$1"
