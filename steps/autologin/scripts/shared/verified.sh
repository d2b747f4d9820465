# What the last try of the password in /etc/kcpassword showed: a word, how often it was tried, the file's
# inode, size and time of the last write, and when the account's password was set.
proof=/etc/macfleet/kcpassword

# password_set sets since to when the password of the user $1 was set, "-" where the directory does not say.
password_set() {
  said=$(dscl . -read "/Users/$1" accountPolicyData 2>/dev/null) || said=''
  since=${said#*<key>passwordLastSetTime</key>}
  [ "$since" != "$said" ] || since=''
  since=${since#*<real>}
  since=${since%%</real>*}
  case $since in '' | *[!0-9.]*) since=- ;; esac
}
