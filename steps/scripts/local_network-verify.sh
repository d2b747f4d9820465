# Connects to virtual machines as a job of the session does: over SSH everything is allowed, so a connection from there shows nothing.
# $1 when the Mac started, $2 the file for the result, then the addresses that answer on the bridge.
booted=$1 file=$2
shift 2
result=none
for address; do
  said=$(nc -z -G 3 -w 3 "$address" 22 2>&1) || :
  case $said in
  *succeeded* | *refused*)
    result=allowed
    break
    ;;
  *"No route to host"*) result=denied ;;
  esac
done
printf '%s %s %s\n' "$result" "$booted" "$*" >"$file"
if [ "$result" = denied ]; then
  echo "macOS denies jobs of the session access to virtual machines: No route to host ($*)" >&2
  exit 1
fi
