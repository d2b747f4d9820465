defaults -currentHost write com.apple.screensaver idleTime -int "$1"
