# $1 is the id, $2 the step.
cd /etc/macfleet/undo || exit 1
if [ ! -d "confirmed.$1" ]; then
  [ -d "armed.$1" ] || exit 3
  [ -f "armed.$1/exit" ] || exit 5
  code=$(cat "armed.$1/exit")
  if [ "$code" != 0 ]; then
    echo "$code"
    tail -n 1 "armed.$1/stderr" >&2
    exit 6
  fi
  # This and the undo's mv are one race: who moves it first has decided.
  mv "armed.$1" "confirmed.$1" 2>/dev/null || exit 3
  sync
fi
key='' step=''
if [ -f undone ]; then read -r key step <undone; fi
if [ "$key $step" = "step $2" ]; then rm -f undone; fi
