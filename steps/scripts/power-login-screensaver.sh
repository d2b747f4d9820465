exec defaults read /Library/Preferences/com.apple.screensaver loginWindowIdleTime
