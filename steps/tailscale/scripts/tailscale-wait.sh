# Uses: put daemon
# Waits until the daemon knows that its device is approved: the control server lists it earlier.
begin tailscale
tries=0
until backend; do
  tries=$((tries + 1))
  [ "$tries" -lt 30 ] || { echo "the device is approved, and tailscaled does not know it yet; apply again" >&2; exit 1; }
  sleep 1
done
