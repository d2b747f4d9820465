# walk reads a file's bytes into seen, up to the one that equals its key byte and so
# terminates the password. It fails if there is none. Hexadecimal text counts as the bytes it
# encodes.
walk() {
  bytes='' pairs='' half='' text=yes
  for byte in $(od -An -v -tx1 <"$1"); do
    bytes="$bytes $byte"
    case $byte in
      0a | 0d) continue ;;
      3[0-9]) digit=${byte#3} ;;
      [46]1) digit=a ;;
      [46]2) digit=b ;;
      [46]3) digit=c ;;
      [46]4) digit=d ;;
      [46]5) digit=e ;;
      [46]6) digit=f ;;
      *)
        text=no
        continue
        ;;
    esac
    if [ -n "$half" ]; then pairs="$pairs $half$digit" half=''; else half=$digit; fi
  done
  [ "$text" = no ] || bytes=$pairs
  key='7d 89 52 23 d2 bc dd ea a3 b9 1f' seen=
  for byte in $bytes; do
    seen="$seen $byte"
    [ "$byte" != "${key%% *}" ] || return 0
    key="${key#* } ${key%% *}"
  done
  return 1
}
