defaults write /Library/Preferences/com.apple.screensaver loginWindowIdleTime -int "$1"
