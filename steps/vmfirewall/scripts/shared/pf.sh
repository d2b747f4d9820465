# Shared functions of the packet filter's scripts. $work is a temporary folder, $anchor macfleet's anchor, if any.
is() { printf '%s' "$2" | cmp -s - "$1"; }

# The temporary file is here, because launchd reads every file in its folder.
put() {
  printf '%s' "$2" >"$work/new"
  chmod 0644 "$work/new"
  chown 0:0 "$work/new"
  mv -f "$work/new" "$1"
}

# Only the last line of the output is shown, so it is pfctl's message about a line of the text $2, with that
# line. If the line is in /etc/pf.conf, it is foreign, and its line number there is printed.
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
    printf '%s\n' "/etc/pf.conf:${at%%:*}: $why: $text (macfleet does not change foreign lines; check with pfctl -nf /etc/pf.conf)" >&2
  fi
}

enabled() { pfctl -s info 2>/dev/null | grep -q '^Status: Enabled'; }

# pfctl -E's output about macfleet's own reference. A reboot removes both the file and the reference.
reference=/var/run/dev.macfleet.pf

# held sets token to macfleet's own reference. It fails if the kernel does not list it.
held() {
  token=''
  [ ! -f "$reference" ] || while read -r word _ number _; do
    [ "$word" != Token ] || token=$number
  done <"$reference"
  case $token in '' | *[!0-9]*) return 1 ;; esac
  pfctl -s References 2>/dev/null | grep -qE "[[:space:]]$token([[:space:]]|\$)"
}

# give_back releases the reference $1. pf stops with its last reference, so it is enabled again if foreign
# rules, such as fail2ban's, are live. $2… are macfleet's anchors.
give_back() {
  was=''
  ! enabled || was=yes
  pfctl -X "$1" >/dev/null 2>&1 || :
  shift
  if [ -n "$was" ] && ! enabled && foreign "$@"; then
    pfctl -e >/dev/null 2>&1 || :
  fi
}

# foreign succeeds if live rules or anchors exist that are neither macOS's nor the anchors $@.
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

# Flush rules first: tables in use cannot be removed.
clear() {
  pfctl -a "$1" -F rules >/dev/null 2>&1 || :
  pfctl -a "$1" -s Tables 2>/dev/null | while read -r table; do
    pfctl -a "$1" -t "$table" -T kill >/dev/null 2>&1 || :
  done
}

# rewrite changes /etc/pf.conf from $1, as macfleet saw it, to $2; $3 is the main ruleset of that, which pfctl checks.
rewrite() {
  if ! is /etc/pf.conf "$2"; then
    if ! is /etc/pf.conf "$1"; then
      echo "/etc/pf.conf was changed after the plan was made and is left unchanged; run macfleet plan again" >&2
      exit 1
    fi
    # Check a copy without load statements, which can fail with "Resource busy" on a live host.
    printf '%s' "$3" >"$work/check"
    if ! pfctl -nf "$work/check" >"$work/said" 2>&1 && ! grep -qi busy "$work/said"; then
      echo "pfctl rejects the new /etc/pf.conf, so the file is unchanged; pfctl said:" >&2
      blame "$work/said" "$work/check"
      exit 1
    fi
    put /etc/pf.conf "$2"
  fi
}
