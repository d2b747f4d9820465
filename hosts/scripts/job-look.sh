state=$(look)
if [ "$state" != ended ]; then
  echo "$state"
  exit
fi
echo "ended $(cat "$job/out/exit")"
show
