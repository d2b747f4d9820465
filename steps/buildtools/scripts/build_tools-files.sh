# Uses: put markers receipt
# Writes the variables between macfleet's markers, and gives the folder for caches to the login user.
# $1 the lines, $2 the folder or nothing, $3 the user.
set -e
begin build_tools
own=''
[ -z "$1" ] || own="# BEGIN macfleet
$1
# END macfleet
"
rest=''
if [ -f /etc/zshenv ]; then
  rest=$(outside /etc/zshenv && printf x)
  rest=${rest%x}
fi
if [ -n "$rest$own" ]; then
  put /etc/zshenv "$rest$own" 0644
else
  rm -f /etc/zshenv
fi
if [ -n "$2" ]; then
  mkdir -p "$2"
  chown "$3:staff" "$2"
  chmod 0755 "$2"
fi
# The receipt marks what macfleet made, also without packer.
[ -f "$receipts/build_tools.receipt" ] || put "$receipts/build_tools.receipt" "previous -
" 0644
sync
