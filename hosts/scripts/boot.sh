# Prints what names this boot of the Mac.
boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null) || boot=
[ -n "$boot" ] || boot=$(sysctl -n kern.boottime)
printf '%s\n' "$boot"
