# $1 is the login user.
set -e
dscl . -delete "/Users/$1" AuthenticationAuthority ';tally;'
pwpolicy -u "$1" -clearaccountpolicies
