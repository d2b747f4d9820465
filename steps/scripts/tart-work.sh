# Uses: answer work
# Prints the work on a host where macfleet may not become root.
work
say "work $?"
say end
