# Standard input holds a line each of: a mark, the folder, the digest, the whole
# size, the part to resume (- for none), and how much of that is right.
# The gzipped bytes follow. If they end too early, the part is kept and the next run resumes
# it. Each run writes to its own part, so that two runs never mix.
read -r mark && read -r dir && read -r digest && read -r size && read -r part && read -r offset || exit 91
printf '\n%s host %s\n\n%s begin push\n' "$mark" "$(id -u)" "$mark"
printf '\n%s begin push\n' "$mark" >&2
done_with() {
  printf '\n%s end %s\n\n%s done\n' "$mark" "$1" "$mark"
  printf '\n%s end %s\n' "$mark" "$1" >&2
  exit 0
}
if [ "$(id -u)" != 0 ]; then done_with needs-root; fi
# failed is for write errors: on a full disk nothing is kept.
failed() {
  echo "$said" >&2
  case $said in *'No space left'* | *'quota exceeded'*)
    rm -f "$new"
    done_with 4 ;;
  esac
  done_with 1
}
bytes_of() {
  bytes=$(wc -c 2>/dev/null <"$1") || bytes=0
  echo $((bytes))
}
above=${dir%/*}
{ mkdir -p "$dir" && chown 0:0 "$above" "$dir" && chmod 0755 "$above" "$dir"; } || done_with 1
# A file that exists at the start may be broken or a link (artifact-look), so it does not show that another run was faster.
before=
[ ! -f "$dir/$digest" ] || before=yes
new=$(mktemp "$dir/.$digest.XXXXXX") || done_with 1
# overtaken reports whether another run was faster. It removed the parts, this one too, but opening it for what arrives made
# a new one without its beginning.
overtaken() { [ -f "$dir/$digest" ] && { [ ! -f "$new" ] || [ -z "$before" ]; } && rm -f "$new"; }
if [ "$part" != - ] && [ -f "$dir/$part" ]; then
  said=$({ head -c "$offset" <"$dir/$part" >"$new"; } 2>&1) || [ ! -f "$dir/$part" ] || failed
  # Another run may be uploading it, unless nothing has come for ten minutes.
  changed=$(stat -f %m "$dir/$part" 2>/dev/null) || changed=
  case $changed in
  '' | *[!0-9]*) ;;
  *) if [ $(($(date +%s) - changed)) -gt 600 ]; then rm -f "$dir/$part"; fi ;;
  esac
fi
if [ "$(bytes_of "$new")" != "$offset" ]; then
  if overtaken; then done_with 0; fi
  rm -f "$new"
  echo "the part $part has gone" >&2
  done_with 7
fi
# It also fails if the connection was cut.
said=$({ gzip -d -c >>"$new"; } 2>&1) || case $said in *'No space left'* | *'quota exceeded'*) failed ;; esac
have=$(bytes_of "$new")
if [ "$have" -lt "$size" ]; then
  if overtaken; then done_with 0; fi
  done_with 3
fi
# openssl takes a third of the time of shasum, which is a program in Perl.
got=$(openssl dgst -sha256 -r <"$new" 2>/dev/null) || got=
case ${got%% *} in '' | *[!0-9a-f]*) got=$(shasum -a 256 <"$new") ;; esac
if overtaken; then done_with 0; fi
if [ "${got%% *}" != "$digest" ]; then
  rm -f "$new"
  echo "the bytes that arrived have the SHA-256 ${got%% *}, not $digest" >&2
  done_with 5
fi
{ chown 0:0 "$new" && chmod 0644 "$new" && mv -f "$new" "$dir/$digest"; } || [ -f "$dir/$digest" ] || done_with 1
rm -f "$dir/.$digest".*
done_with 0
