# What the scripts of the packet filter share. $work is a folder of theirs, $anchor our own, if there is one.
is() { printf '%s' "$2" | cmp -s - "$1"; }

# The temporary file stands here: launchd reads every file of its own folder.
put() {
  printf '%s' "$2" >"$work/new"
  chmod 0644 "$work/new"
  chown 0:0 "$work/new"
  mv -f "$work/new" "$1"
}

# A person sees the last line alone, so it is the one by which pfctl names a line of the text $2, with
# that line. Where /etc/pf.conf has it, it is somebody else's, and its number there is what helps.
blame() {
  tail -n 4 "$1" >&2
  said=$(grep '^/[^:]*:[0-9][0-9]*: ' "$1" | head -n 1)
  [ -n "$said" ] || said=$(tail -n 1 "$1")
  case $said in "$2":*) ;; *) printf '%s\n' "$said" >&2; return ;; esac
  why=${said#"$2":}
  text=$(head -n "${why%%:*}" "$2" | tail -n 1)
  why=${why#*: }
  at=$(grep -nxF -e "$text" /etc/pf.conf | head -n 1)
  if [ -z "$at" ] || [ "$text" = "anchor \"$anchor\"" ]; then
    printf '%s\n' "$said: $text" >&2
  else
    printf '%s\n' "/etc/pf.conf:${at%%:*}: $why: $text (this line is not macfleet's, so /etc/pf.conf is left alone; pfctl -nf /etc/pf.conf checks it)" >&2
  fi
}

enabled() { pfctl -s info 2>/dev/null | grep -q '^Status: Enabled'; }

# What pfctl -E said of macfleet's own reference. A boot takes the file and the reference away.
reference=/var/run/dev.macfleet.pf

# held sets token to macfleet's own reference. It fails where the kernel does not list it.
held() {
  token=''
  [ ! -f "$reference" ] || while read -r word _ number _; do
    [ "$word" != Token ] || token=$number
  done <"$reference"
  case $token in '' | *[!0-9]*) return 1 ;; esac
  pfctl -s References 2>/dev/null | grep -qE "[[:space:]]$token([[:space:]]|\$)"
}

# give_back gives the reference $1 back. pf ends with its last one: where rules of others are live, such as
# fail2ban's, it goes on without one. $2… are our own anchors.
give_back() {
  was=''
  ! enabled || was=yes
  pfctl -X "$1" >/dev/null 2>&1 || :
  shift
  if [ -n "$was" ] && ! enabled && foreign "$@"; then
    pfctl -e >/dev/null 2>&1 || :
  fi
}

# foreign succeeds where what is live filters, or leads to what does, and is neither macOS's nor of the anchors $@.
foreign() {
  pfctl -s rules 2>/dev/null | {
    found=''
    while IFS= read -r line; do
      case $line in 'anchor "com.apple'*) continue ;; 'anchor '* | 'block '* | 'pass '*) ;; *) continue ;; esac
      other=yes
      for name in "$@"; do
        case $line in "anchor \"$name\""*) other='' ;; esac
      done
      found=$found$other
    done
    [ -n "$found" ]
  }
}

# Rules first: a table that they use stays.
clear() {
  pfctl -a "$1" -F rules >/dev/null 2>&1 || :
  pfctl -a "$1" -s Tables 2>/dev/null | while read -r table; do
    pfctl -a "$1" -t "$table" -T kill >/dev/null 2>&1 || :
  done
}

# rewrite brings /etc/pf.conf from $1, as macfleet saw it, to $2; $3 is the main ruleset of that, which pfctl checks.
rewrite() {
  if ! is /etc/pf.conf "$2"; then
    if ! is /etc/pf.conf "$1"; then
      echo "/etc/pf.conf was changed after macfleet had looked at it and is left alone; run macfleet plan again" >&2
      exit 1
    fi
    # A copy is checked. It loads no anchor: on a live host that alone can be "Resource busy".
    printf '%s' "$3" >"$work/check"
    if ! pfctl -nf "$work/check" >"$work/said" 2>&1 && ! grep -qi busy "$work/said"; then
      echo "pfctl refuses what /etc/pf.conf would hold, so it stays as it is; pfctl said:" >&2
      blame "$work/said" "$work/check"
      exit 1
    fi
    put /etc/pf.conf "$2"
  fi
}
