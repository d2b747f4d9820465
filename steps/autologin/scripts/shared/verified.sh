# The result of the last try of the password in /etc/kcpassword: a word, the number of tries, the file's
# inode, size and modification time, and when the account's password was set.
proof=/etc/macfleet/kcpassword

# password_set sets since to the time the password of the user $1 was set, or "-" if unknown.
password_set() {
  said=$(dscl . -read "/Users/$1" accountPolicyData 2>/dev/null) || said=''
  since=${said#*<key>passwordLastSetTime</key>}
  [ "$since" != "$said" ] || since=''
  since=${since#*<real>}
  since=${since%%</real>*}
  case $since in '' | *[!0-9.]*) since=- ;; esac
}
