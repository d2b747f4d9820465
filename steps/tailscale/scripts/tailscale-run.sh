# Uses: receipt put service job daemon former putback forget
# Updates the job and restarts the daemon. If it does not answer, the former programs and job are put back.
# $1 the property list, $2 how to restart it: "load", "kick" or "ask", $3 "guarded": the former ones are kept until a new connection
# confirms the change.
set -e
begin tailscale
mkdir -p "$folder"
chmod 0700 "$folder"
chown 0:0 "$folder"
[ "$3" != guarded ] || keep_former
start tailscale "$label" "$bin/tailscaled" "$1" "$2"
if ! stays tailscale "$bin/tailscaled" "$1" || ! answers 15; then
  tail -n 20 /var/log/tailscaled.log >&2 || :
  if [ -d "$former" ]; then
    put_back || exit 71
    echo "the new tailscaled does not stay up; the former version runs again (log: /var/log/tailscaled.log)" >&2
  else
    echo "tailscaled does not stay up (log: /var/log/tailscaled.log)" >&2
  fi
  exit 70
fi
steady 15
if [ "$3" = guarded ]; then sync; else forget_former; fi
