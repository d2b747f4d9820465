# $1 is the folder of artifacts, $2 the digest of one, $3 its URL. launchd runs
# this, so the download goes on when the line is cut; where it breaks off itself,
# the next one goes on with what is there.
dir=$1 digest=$2 url=$3
above=${dir%/*} part=$dir/.$digest.download
is_right() {
  got=$(shasum -a 256 <"$part") && got=${got%% *} && [ "$got" = "$digest" ]
}
download() {
  curl -q -f -s -S -L --globoff --proto '=https' --proto-redir '=https' --connect-timeout 30 --speed-limit 1024 --speed-time 60 \
    --retry 3 -C - -o "$part" --url "$url"
}
{ mkdir -p "$dir" && chown 0:0 "$above" "$dir" && chmod 0755 "$above" "$dir"; } || exit 1
got=
resumed=no
if [ -s "$part" ]; then resumed=yes; fi
if [ "$resumed" = no ] || ! is_right; then
  code=0
  download || code=$?
  # A server that has changed its file, or cannot go on within one: from the start.
  if [ "$resumed" = yes ] && [ "$code" != 23 ] && { [ "$code" = 22 ] || [ "$code" = 33 ] || [ "$code" = 36 ] || [ "$code" = 0 ]; } && ! is_right; then
    rm -f "$part"
    code=0
    download || code=$?
  fi
  case $code in
  0) ;;
  23)
    rm -f "$part"
    exit 4 ;;
  *) exit 6 ;;
  esac
fi
if ! is_right; then
  rm -f "$part"
  echo "$url has the SHA-256 $got, not $digest" >&2
  exit 5
fi
{ chown 0:0 "$part" && chmod 0644 "$part" && mv -f "$part" "$dir/$digest"; } || exit 1
rm -f "$dir/.$digest".*
