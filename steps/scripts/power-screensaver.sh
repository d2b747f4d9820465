exec defaults -currentHost read com.apple.screensaver idleTime
