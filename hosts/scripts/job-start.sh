# $1 says whether the job may be at its end already (resume) or not (fresh); then
# what start_job takes.
may=$1
shift
need_session
state=$(look)
if [ "$state" = ended ] && [ "$may" = resume ] && [ "$(cat "$job/digest")" = "$1" ]; then state=running; fi
if [ "$state" != running ]; then
  drop_job
  start_job "$@" || [ -f "$job/digest" ] || exit 1
fi
cat "$job/digest"
