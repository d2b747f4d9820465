# Uses: daemon
# Keeps the new programs: a new connection came over the tailnet.
rm -rf "$former"
sync
