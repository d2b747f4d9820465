# $1 is how many seconds the job may take; then what start_job takes.
limit=$1
shift
need_session
i=0
while [ "$(look)" = running ] && [ "$i" -lt "$limit" ]; do
  sleep 1
  i=$((i + 1))
done
drop_job
start_job "$@" || {
  echo "another run asks the same now" >&2
  exit 1
}
while [ "$(look)" = running ] && [ "$i" -lt "$limit" ]; do
  sleep 1
  i=$((i + 1))
done
code=1
case $(look) in
ended)
  code=$(cat "$job/out/exit")
  show
  ;;
running)
  code=124
  echo "watchdog: stopped after $limit s" >&2
  ;;
*) echo "the job ended without a result" >&2 ;;
esac
drop_job
exit "$code"
