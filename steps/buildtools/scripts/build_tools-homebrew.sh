# Prints what is installed of Homebrew, without running it: that takes seconds. $1 full names of formulae, one a line.
brew=/opt/homebrew
[ -x "$brew/bin/brew" ] || { printf '\n== end\n'; exit; }
trusts=no
[ ! -e "$brew/Library/Homebrew/cmd/trust.rb" ] || trusts=trusts
printf '\n== homebrew 0 %s\n' "$trusts"
if [ "$trusts" = trusts ] && [ -f "$HOME/.homebrew/trust.json" ]; then
  cat "$HOME/.homebrew/trust.json"
  printf '\n== trusted %s\n' $?
fi
pinned=''
while read -r full; do
  name=${full##*/}
  for version in "$brew/Cellar/$name"/*; do
    [ ! -d "$version" ] || printf '%s %s\n' "$name" "${version##*/}"
  done
  if [ -L "$brew/var/homebrew/pinned/$name" ]; then pinned="$pinned$name
"; fi
done <<EOS
$1
EOS
printf '\n== versions 0\n%s\n== pinned 0\n' "$pinned"
noted=/usr/local/lib/macfleet/homebrew.receipt
if [ -f "$noted" ]; then
  while read -r name version; do printf '%s %s\n' "$name" "$version"; done <"$noted"
  printf '\n== noted 0\n'
fi
printf '\n== end\n'
