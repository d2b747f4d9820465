# Uses: put
# Accepts Xcode's licence: without it git and every compiler fail. $1 Xcode's bundle.
set -e
begin build_tools
DEVELOPER_DIR=$1/Contents/Developer xcodebuild -license accept
sync
