# Uses: receipt service daemon former putback forget
# Puts back the programs and the job from before a roll whose connection did not come back. launchd may refuse a job just after it has
# unloaded it, and this host has no other way back.
tries=0
until put_back; do
  tries=$((tries + 1))
  [ "$tries" -lt 5 ] || exit 1
  sleep 2
done
