# What macOS's list of background items says of the job: it may forbid that the job is started at a boot.
said=$(sfltool dumpbtm 2>/dev/null)
while IFS= read -r line; do
  case $line in
    *Disposition:*) disposition=$line ;;
    *dev.macfleet.tart-kubelet*) [ -z "$disposition" ] || printf '%s\n' "$disposition" ;;
  esac
done <<EOF
$said
EOF
