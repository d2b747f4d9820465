# Prints the job's entry in macOS's list of background items, which may forbid it to start at boot.
said=$(sfltool dumpbtm 2>/dev/null)
while IFS= read -r line; do
  case $line in
    *Disposition:*) disposition=$line ;;
    *dev.macfleet.tart-kubelet*) [ -z "$disposition" ] || printf '%s\n' "$disposition" ;;
  esac
done <<EOF
$said
EOF
