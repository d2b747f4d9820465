# Uses: receipt service daemon former
# Puts back the programs and the job from before a roll whose connection did not come back.
set -e
put_back
