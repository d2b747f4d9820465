# What macOS's list of background items says of the job: it may forbid that the job is started at a boot.
sfltool dumpbtm 2>/dev/null | grep -E 'Disposition:|dev\.macfleet\.tart-kubelet' | while IFS= read -r line; do
  case $line in
    *Disposition:*) disposition=$line ;;
    *dev.macfleet.tart-kubelet*) [ -z "$disposition" ] || printf '%s\n' "$disposition" ;;
  esac
done
