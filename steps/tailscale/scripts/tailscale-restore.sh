# Uses: receipt service daemon
# Puts back the programs and the job from before a roll whose connection did not come back.
set -e
put_back
