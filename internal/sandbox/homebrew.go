package sandbox

import "strings"

// homebrewInstaller is what Homebrew's installer does to a Mac: it needs Xcode's licence and passwordless sudo, refuses root, and
// selects the command line tools when it has installed them. VERSION is the version of Homebrew that it installs.
const homebrewInstaller = `#!/bin/bash
[ "$(id -u)" != 0 ] || { echo "Don't run this as root!" >&2; exit 1; }
[ -n "${NONINTERACTIVE-}" ] || { echo "Press RETURN/ENTER to continue or any other key to abort:"; exit 1; }
sudo -n true || { echo "Need sudo access on macOS" >&2; exit 1; }
selected=$(xcode-select -p 2>/dev/null)
case $selected in
*/Xcode*) xcodebuild -license check >/dev/null 2>&1 || { echo "You have not agreed to the Xcode license." >&2; exit 1; } ;;
esac
tools=/Library/Developer/CommandLineTools
if [ ! -e $tools/usr/bin/git ]; then
  sudo mkdir -p $tools/usr/bin
  sudo touch $tools/usr/bin/git
  sudo xcode-select --switch $tools
fi
sudo mkdir -p /opt/homebrew/bin /opt/homebrew/Cellar /opt/homebrew/opt /opt/homebrew/var/homebrew/pinned /opt/homebrew/Library/Taps /opt/homebrew/Library/Homebrew/cmd
sudo chown -R "$(id -un):admin" /opt/homebrew
echo VERSION >/opt/homebrew/.version
case VERSION in 5.0.*) ;; *) echo '# trust' >/opt/homebrew/Library/Homebrew/cmd/trust.rb ;; esac
cat >/opt/homebrew/bin/brew <<'BREW'
BREWTEXTBREW
chmod 755 /opt/homebrew/bin/brew
echo '==> Installation successful!'
`

// brewText is Homebrew as far as its commands change a Mac. From 5.1.15 on it has "trust", and 6 loads no formula of an untrusted tap.
const brewText = `#!/bin/bash
prefix=/opt/homebrew
[ "$(id -u)" != 0 ] || { echo "Error: Running Homebrew as root is extremely dangerous and no longer supported." >&2; exit 1; }
version=$(cat $prefix/.version)
trust=$HOME/.homebrew/trust.json
refuse() { echo "Error: Refusing to load formula $1 from untrusted tap ${1%/*}." >&2; exit 1; }
trusts() {
  case $version in 6.*) ;; *) return 0 ;; esac
  case $1 in */*) grep -qF "\"$1\"" "$trust" 2>/dev/null ;; esac
}
note() {
  [ -e $prefix/Library/Homebrew/cmd/trust.rb ] || return 0
  mkdir -p "$HOME/.homebrew"
  known=$(grep -F '"' "$trust" 2>/dev/null | grep -vF '{' | grep -vF '}')
  printf '{\n%s\n"%s": "formula"\n}\n' "${known:+$known,}" "$1" >"$trust.new"
  mv -f "$trust.new" "$trust"
}
full() {
  for tap in $prefix/Library/Taps/*/*; do
    [ -f "$tap/$1.rb" ] || continue
    owner=${tap%/*}
    echo "${owner##*/}/${tap##*/homebrew-}/$1"
    return
  done
  echo "$1"
}
command=$1
shift
case $command in
--version) echo "Homebrew $version" ;;
install)
  for formula; do
    case $formula in -*) continue ;; esac
    name=${formula##*/}
    case $formula in
    */*/*)
      tap=${formula%/*}
      mkdir -p "$prefix/Library/Taps/${tap%/*}/homebrew-${tap##*/}"
      echo "# $name" >"$prefix/Library/Taps/${tap%/*}/homebrew-${tap##*/}/$name.rb"
      note "$formula"
      ;;
    esac
    trusts "$(full "$name")" || refuse "$(full "$name")"
    for old in $prefix/Cellar/$name/*; do
      [ ! -d "$old" ] || [ -L "$prefix/var/homebrew/pinned/$name" ] || [ -n "${HOMEBREW_NO_INSTALL_UPGRADE-}" ] || rm -rf "$old"
    done
    case $name in packer) newest=1.15.4 ;; *) newest=3.7.1 ;; esac
    for old in $prefix/Cellar/$name/*; do [ ! -d "$old" ] || newest=${old##*/}; done
    mkdir -p "$prefix/Cellar/$name/$newest/bin"
    printf '#!/bin/sh\necho %s %s\n' "$name" "$newest" >"$prefix/Cellar/$name/$newest/bin/$name"
    chmod 755 "$prefix/Cellar/$name/$newest/bin/$name"
    ln -sf "../Cellar/$name/$newest/bin/$name" "$prefix/bin/$name"
  done
  ;;
pin)
  for name; do
    [ -d "$prefix/Cellar/$name" ] || { echo "Error: $name not installed" >&2; exit 1; }
    trusts "$(full "$name")" || refuse "$(full "$name")"
    for newest in $prefix/Cellar/$name/*; do :; done
    ln -sf "../../../Cellar/$name/${newest##*/}" "$prefix/var/homebrew/pinned/$name"
  done
  ;;
trust)
  [ -e $prefix/Library/Homebrew/cmd/trust.rb ] || { echo "Error: Unknown command: brew trust" >&2; exit 1; }
  [ "$1" = --formula ] || { echo "Usage: brew trust --formula formula" >&2; exit 1; }
  note "$2"
  ;;
upgrade)
  for keg in $prefix/Cellar/*; do
    name=${keg##*/}
    [ ! -L "$prefix/var/homebrew/pinned/$name" ] || continue
    for old in "$keg"/*; do mv "$old" "$keg/99.0.0"; done
    ln -sf "../Cellar/$name/99.0.0/bin/$name" "$prefix/bin/$name"
  done
  ;;
unpin) for name; do rm -f "$prefix/var/homebrew/pinned/$name"; done ;;
*) echo "Error: Unknown command: brew $command" >&2; exit 1 ;;
esac
`

// installerOf returns the installer of a version of Homebrew.
func installerOf(version string) []byte {
	text := strings.ReplaceAll(homebrewInstaller, "VERSION", version)
	return []byte(strings.Replace(text, "BREWTEXT", brewText, 1))
}
