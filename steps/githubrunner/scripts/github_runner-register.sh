# Registers the runner, as the login user. Standard input has the registration token, which reaches config.sh only in its
# environment: its prompt needs a console, and arguments are visible to every user of the host.
# $1 the runner's folder, $2 the address, $3 the name, $4 labels, $5 the group, $6 the work folder, $7 "bare" for a runner
# without GitHub's own labels.
set -e
root=$1 url=$2 name=$3 labels=$4 group=$5 folder=$6 bare=$7
IFS= read -r token
if [ -z "$token" ]; then
  echo "the received registration token is empty; apply again" >&2
  exit 1
fi
cd "$root"
set -- --unattended --replace --url "$url" --name "$name" --work "$folder"
[ -z "$labels" ] || set -- "$@" --labels "$labels"
[ -z "$group" ] || set -- "$@" --runnergroup "$group"
[ -z "$bare" ] || set -- "$@" --no-default-labels
code=0
said=$(ACTIONS_RUNNER_INPUT_TOKEN=$token /bin/sh -c 'exec ./config.sh "$@"' sh "$@" 2>&1 </dev/null) || code=$?
if [ "$code" = 0 ] && ! [ -s .runner ]; then
  code=1
fi
if [ "$code" != 0 ]; then
  while IFS= read -r line; do
    case $line in '' | *"$token"*) ;; *) printf '%s\n' "$line" >&2 ;; esac
  done <<END
$said
END
  exit 1
fi
sync
