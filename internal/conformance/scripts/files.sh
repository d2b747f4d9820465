# $1 is the row's condition, $2 its script, the rest its arguments. The row works in a temporary
# folder.
condition=$1 script=$2
shift 2
folder=$(mktemp -d /tmp/macfleet-conformance.XXXXXX) || exit 97
trap 'cd / && rm -rf "$folder"' EXIT
cd "$folder" || exit 97
/bin/sh -c "$condition" >/dev/null 2>&1 </dev/null || exit 96
/bin/sh -c "$script" sh "$@" </dev/null
