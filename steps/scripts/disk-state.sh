# Uses: answer work
# Prints the login user's virtual machines and cached images, the free space, the time, and what runs.
if [ -x /usr/local/bin/tart ]; then
  code=0
  /bin/sh -c 'exec "$1" list --format json' sh /usr/local/bin/tart || code=$?
  say "images $code"
fi
room
date +%s
say "now $?"
work
say "work $?"
say end
