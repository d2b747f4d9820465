# $1 is the folder of artifacts, $2 the digest of one. Prints whether it exists,
# what an interrupted delivery left of it, and the free space of its disk.
dir=$1 digest=$2
if [ -f "$dir/$digest" ] && [ ! -L "$dir/$digest" ]; then
  got=$(shasum -a 256 <"$dir/$digest")
  if [ "${got%% *}" = "$digest" ]; then
    echo there
    exit
  fi
fi
best='' most=0
for part in "$dir/.$digest".*; do
  if [ ! -f "$part" ] || [ -L "$part" ]; then continue; fi
  bytes=$(($(wc -c <"$part")))
  if [ "$bytes" -gt "$most" ]; then best=$part most=$bytes; fi
done
if [ -n "$best" ]; then
  # It may be growing: another run may be uploading it.
  got=$(head -c "$most" <"$best" | shasum -a 256)
  echo "part ${best##*/} $most ${got%% *}"
fi
at=$dir
while [ -n "$at" ] && [ ! -d "$at" ]; do at=${at%/*}; done
free=$(df -k "${at:-/}") || exit 1
# In kilobytes, in the last line's fourth column.
printf '%s\n' "$free" | tail -n 1 | { read -r _ _ _ available _ && echo "free $available"; }
