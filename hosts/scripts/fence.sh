# Accepts or refuses a run: every exec of a run begins with this. Standard
# input holds one line each: a mark, the run's id, its epoch (0: it has none yet
# and the host gives it one), where its lock is kept (cluster or host), after how many
# silent seconds a lock kept by the host expires, the run whose lock is ignored (- for
# none), and who runs it. A file named after an epoch holds the run that owns it. Only
# one run can create it, and the highest epoch counts.
# The answer is the epoch, or 0 if only root could enter.
runs=/etc/macfleet/runs

# last finds who entered last.
last() {
  highest=0 holder='' keeps='' at=0 by=''
  for file in "$runs"/*; do
    n=${file##*/}
    case $n in '' | 0* | *[!0-9]* | ??????????*) continue ;; esac
    if [ "$n" -gt "$highest" ]; then highest=$n; fi
  done
  [ "$highest" -gt 0 ] || return 0
  read -r holder keeps at by <"$runs/$highest" || :
  case $at in '' | *[!0-9]*) at=0 ;; esac
}

# alive reports whether the host keeps the lock of the run that entered last, and that run
# was active recently. A clock that was set back must not extend this forever.
alive() {
  if [ "$keeps" != host ] || [ "$holder" = "$from" ] || [ -e "$runs/$highest.left" ]; then return 1; fi
  heard=$(cat "$runs/$highest.seen" 2>/dev/null) || heard=
  case $heard in '' | *[!0-9]*) heard=$at ;; esac
  age=$(($(date +%s) - heard))
  [ "$age" -lt "$span" ] && [ "$age" -gt "-$span" ]
}

# note enters this run under an epoch, unless another one is faster. It fails if
# nothing can be written.
note() {
  mkdir -p "$runs" && chmod 0755 /etc/macfleet "$runs" && new=$(mktemp "$runs/.new.XXXXXX") || return 1
  if printf '%s %s %s %s\n' "$run" "$keeper" "$(date +%s)" "$who" >"$new" && chmod 0644 "$new"; then
    ln "$new" "$runs/$1" 2>/dev/null || :
  fi
  rm -f "$new"
  [ -e "$runs/$1" ]
}

# entered accepts the run and removes the notes of earlier runs.
entered() {
  if [ "$uid" = 0 ] && [ "$epoch" -gt 0 ]; then
    if date +%s >"$runs/.seen" && chmod 0644 "$runs/.seen"; then mv -f "$runs/.seen" "$runs/$epoch.seen"; fi
    rm -f "$runs/$epoch.left"
    for file in "$runs"/*; do
      n=${file##*/}
      n=${n%.*}
      case $n in '' | *[!0-9]* | ??????????*) continue ;; esac
      if [ "$n" -lt "$epoch" ]; then rm -f "$file"; fi
    done
  fi
  printf '\n%s entered %s\n' "$mark" "$epoch"
}

# refused prints the reason and the other run, and ends the exec.
refused() {
  printf '\n%s host %s\n\n%s refused %s %s %s %s %s %s\n' "$mark" "$uid" "$mark" "$1" "$highest" "$at" "$(date +%s)" "${holder:--}" "$by"
  exit 0
}

# fence repeats until it is known who entered last: of two runs that enter at once,
# one checks again.
fence() {
  tries=0
  while [ "$tries" -lt 20 ]; do
    tries=$((tries + 1))
    last
    if [ "$holder" = "$run" ] && [ "$epoch" -le "$highest" ]; then
      epoch=$highest
      entered
      return
    fi
    if [ "$holder" != "$run" ]; then
      if [ "$epoch" -gt 0 ] && [ "$highest" -ge "$epoch" ]; then refused newer; fi
      if [ "$highest" -gt 0 ] && alive; then refused locked; fi
    fi
    if [ "$uid" != 0 ]; then
      epoch=0
      entered
      return
    fi
    if [ "$epoch" -gt 0 ]; then
      note "$epoch" || refused unnoted
    else
      note $((highest + 1)) || refused unnoted
    fi
  done
  refused unnoted
}

read -r mark && read -r run && read -r epoch && read -r keeper && read -r span && read -r from && read -r who || exit 91
uid=$(id -u)
fence
