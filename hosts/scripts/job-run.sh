# launchd runs this in the job's own folder.
cd "${0%/*}" || exit 1
[ -n "${HOME-}" ] || eval "HOME=~$(id -un)"
export HOME
set --
i=1
while [ -f "arg.$i" ]; do
  value=$(cat "arg.$i" && printf x)
  set -- "$@" "${value%x}"
  i=$((i + 1))
done
/bin/sh ./script "$@" </dev/null >out/stdout 2>out/stderr
code=$?
printf '%s\n' "$code" >out/exit.new
mv -f out/exit.new out/exit
