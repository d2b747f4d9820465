exec defaults read /Library/Preferences/.GlobalPreferences com.apple.autologout.AutoLogOutDelay
