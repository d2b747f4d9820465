# Uses: put
# Writes the kubeconfig from standard input. $1 is the login user.
set -e
folder=/etc/tart-kubelet
begin tart_kubelet
mkdir -p "$folder"
chmod 0755 "$folder"
chown 0:0 "$folder"
rm -f "$folder"/.kubeconfig.*
new=$(mktemp "$folder/.kubeconfig.XXXXXX")
trap 'rm -f "$new"' EXIT
cat >"$new"
if ! tail -n 1 "$new" | grep -q '^ *token: .'; then
  echo "the received kubeconfig is incomplete; apply again" >&2
  exit 1
fi
chmod 0600 "$new"
chown "$1:staff" "$new"
mv -f "$new" "$folder/kubeconfig"
sync
