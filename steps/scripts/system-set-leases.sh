# Sets how many seconds an address is leased to a virtual machine. $1 seconds.
exec defaults write /Library/Preferences/SystemConfiguration/com.apple.InternetSharing.default bootpd -dict-add DHCPLeaseTimeSecs -int "$1"
