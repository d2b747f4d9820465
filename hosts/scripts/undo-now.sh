# $1 is the id, $2 says why the change must go.
armed=/etc/macfleet/undo/armed.$1
undoing=/etc/macfleet/undo/undoing.$1
if [ -d "$armed" ]; then
  printf '%s\n' "$2" >"$armed/now.new" && mv -f "$armed/now.new" "$armed/now"
fi
i=0
while [ "$i" -lt 15 ] && { [ -d "$armed" ] || [ -d "$undoing" ]; }; do
  launchctl kickstart system/dev.macfleet.undo || :
  if [ -d "$armed" ] || [ -d "$undoing" ]; then sleep 1; fi
  i=$((i + 1))
done
