# Uses: put receipt
# Installs formulae once, trusts and pins them, and notes their versions. It never upgrades one. $1 the login user, then full names.
set -e
user=$1
shift
begin build_tools
prefix=/opt/homebrew
cd /
# Homebrew refuses root. Without these it asks, upgrades what is installed, and upgrades what depends on it.
brew() {
  sudo -H -u "$user" /bin/sh -c '
    export NONINTERACTIVE=1 HOMEBREW_NO_ASK=1 HOMEBREW_NO_AUTO_UPDATE=1 HOMEBREW_NO_ANALYTICS=1 HOMEBREW_NO_ENV_HINTS=1
    export HOMEBREW_NO_INSTALL_UPGRADE=1 HOMEBREW_NO_INSTALLED_DEPENDENTS_CHECK=1 HOMEBREW_NO_INSTALL_CLEANUP=1
    exec "$@"' sh "$prefix/bin/brew" "$@" </dev/null
}
noted=''
for full; do
  name=${full##*/}
  there=no
  for version in "$prefix/Cellar/$name"/*; do [ ! -d "$version" ] || there=yes; done
  [ "$there" = yes ] || brew install --formula "$full"
  case $full in
  */*)
    if [ -e "$prefix/Library/Homebrew/cmd/trust.rb" ] && ! grep -qF "\"$full\"" "/Users/$user/.homebrew/trust.json" 2>/dev/null; then
      brew trust --formula "$full"
    fi
    ;;
  esac
  [ -L "$prefix/var/homebrew/pinned/$name" ] || brew pin "$name"
  versions=''
  for version in "$prefix/Cellar/$name"/*; do
    [ ! -d "$version" ] || versions="${versions:+$versions and }${version##*/}"
  done
  noted="$noted$name $versions
"
done
put "$receipts/homebrew.receipt" "$noted" 0644
sync
