defaults write /Library/Preferences/.GlobalPreferences com.apple.autologout.AutoLogOutDelay -int "$1"
