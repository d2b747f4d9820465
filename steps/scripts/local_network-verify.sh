# Connects to a virtual machine as a job of the session does: over SSH everything is allowed, so a connection from there shows nothing.
# $1 the bridge's network up to its last dot, $2 when the Mac started, $3 when addresses were last leased, $4 the file
# for the result.
result=none
while read -r line; do
  case $line in
  "ip_address=$1."*)
    said=$(nc -z -G 3 -w 3 "${line#ip_address=}" 22 2>&1) || :
    case $said in
    *succeeded* | *refused*) result=allowed ;;
    *"No route to host"*) [ "$result" = allowed ] || result=denied ;;
    esac
    ;;
  esac
done </var/db/dhcpd_leases
printf '%s %s %s\n' "$result" "$2" "$3" >"$4"
if [ "$result" = denied ]; then
  echo "macOS denies jobs of the session access to the virtual machines at $1.0: No route to host" >&2
  exit 1
fi
