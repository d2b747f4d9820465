# Uses: daemon forget
# Keeps the new programs: a new connection came over the tailnet.
forget_former
