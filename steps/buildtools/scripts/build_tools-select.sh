# Uses: put
# Selects an Xcode for the command line tools. $1 its bundle.
set -e
begin build_tools
xcode-select -s "$1/Contents/Developer"
sync
