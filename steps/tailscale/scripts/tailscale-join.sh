# Uses: receipt put service daemon
# Joins the tailnet with the auth key on standard input, which reaches tailscale as a file that only root can read.
# A change has 60 seconds: a script that is killed in between leaves a daemon with the key.
# $1 the host's name, $2 another control server or nothing, $3 "fresh" to begin with a new state.
set -e
name=$1 url=$2 fresh=$3
begin tailscale
rm -f /etc/macfleet/.tailscale-key.*
key=$(mktemp /etc/macfleet/.tailscale-key.XXXXXX)
trap 'rm -f "$key"' EXIT
IFS= read -r secret || :
if [ -z "$secret" ]; then
  echo "the received key for the tailnet is empty; apply again" >&2
  exit 1
fi
printf '%s\n' "$secret" >"$key"

# A key of the daemon's memory goes with its process only.
if [ "$fresh" = fresh ]; then
  leave "system/$label"
  rm -rf "$folder/former"
  mkdir -p "$folder"
  chmod 0700 "$folder"
  if [ -f "$folder/tailscaled.state" ]; then
    mkdir "$folder/former"
    mv "$folder/tailscaled.state" "$folder/former/"
  fi
fi
look "system/$label"
[ "$code" = 0 ] || load "$label" "$list"
if ! answers 10; then
  echo "tailscaled does not answer (log: /var/log/tailscaled.log)" >&2
  exit 1
fi
set -- up "--auth-key=file:$key" "--hostname=$name" --accept-dns=false --accept-routes=false --ssh=false --timeout=30s
[ -z "$url" ] || set -- "$@" "--login-server=$url"
ended=0
answer=$(client "$@" 2>&1 </dev/null) || ended=$? # look sets code and said
rm -f "$key"
# The exit code is not evidence: the daemon may have joined after its client gave up.
tries=0
until backend; do
  tries=$((tries + 1))
  case $status in *'"BackendState": "NeedsMachineAuth"'*) break ;; esac
  if [ "$tries" -ge 5 ]; then
    # A daemon that did not join keeps the key and tries for ever.
    leave "system/$label"
    while IFS= read -r line; do
      case $line in '' | *"$secret"*) ;; *) printf '%s\n' "$line" >&2 ;; esac
    done <<END
$answer
END
    echo "the host did not join the tailnet (tailscale up: exit code $ended); tailscaled was stopped, so that it does not try again by itself" >&2
    exit 1
  fi
  sleep 1
done
rm -rf "$folder/former"
sync
