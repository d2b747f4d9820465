# Uses: put markers receipt
# Deletes packer, if macfleet installed it, and the variables. The folder with caches, Xcode, and what Homebrew
# installed stay.
set -e
begin build_tools
if [ -f /etc/zshenv ]; then
  rest=$(outside /etc/zshenv && printf x)
  rest=${rest%x}
  if [ -n "$rest" ]; then
    put /etc/zshenv "$rest" 0644
  else
    rm -f /etc/zshenv
  fi
fi
read_receipt build_tools
[ -z "$current" ] || rm -f /usr/local/bin/packer
rm -rf /usr/local/lib/macfleet/.packer.new.*
rm -f "$receipts/build_tools.receipt" "$receipts/homebrew.receipt"
sync
