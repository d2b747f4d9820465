# Turns automatic updates of macOS and of apps on or off. $1 is 1 or 0.
set -e
for key in AutomaticCheckEnabled AutomaticDownload AutomaticallyInstallMacOSUpdates CriticalUpdateInstall ConfigDataInstall; do
  defaults write /Library/Preferences/com.apple.SoftwareUpdate "$key" -bool "$1"
done
defaults write /Library/Preferences/com.apple.commerce AutoUpdate -bool "$1"
