# Prints the launchd jobs that are neither macOS's nor macfleet's: of each loaded one its target, property list and
# program, the property lists that the next boot loads, and the jobs that are disabled.
tab='	'

# known reports whether a label belongs to macOS or macfleet.
known() {
  case $1 in '' | com.apple.* | com.openssh.* | dev.macfleet.*) return 0 ;; esac
  return 1
}

# about prints a loaded job, unless it was booted out and is about to end.
about() {
  said=$(launchctl print "$1" 2>/dev/null) || return 0
  case $said in *"${tab}state = SIGTERMed"*) return 0 ;; esac
  printf 'job %s\n' "$1"
  while IFS= read -r line; do
    case $line in "${tab}path = "* | "${tab}program = "*) printf '%s\n' "${line#"$tab"}" ;; esac
  done <<END
$said
END
}

# loaded prints the jobs of the domain $1, and which are disabled there.
loaded() {
  said=$(launchctl print "$1" 2>/dev/null) || return 1
  inside=''
  while read -r one two three _; do
    case $one:$two:$three in
      services:=:'{') inside=yes ;;
      '}::') inside='' ;;
      *) [ -z "$inside" ] || known "$three" || about "$1/$three" ;;
    esac
  done <<END
$said
END
  said=$(launchctl print-disabled "$1" 2>/dev/null)
  while read -r label arrow state _; do
    case $arrow$state in '=>disabled' | '=>true') label=${label#\"} && printf 'disabled %s/%s\n' "$1" "${label%\"}" ;; esac
  done <<END
$said
END
}

# files prints the property lists in the folder $2, whose jobs belong to the domain $1.
files() {
  for path in "$2"/*.plist; do
    label=${path##*/} && label=${label%.plist}
    if [ -f "$path" ] && ! known "$label"; then printf 'file %s/%s\npath = %s\n' "$1" "$label" "$path"; fi
  done
}

uid=$(id -u)
if ! loaded system; then
  echo "launchctl does not print its jobs" >&2
  exit 1
fi
loaded "gui/$uid" # exists only in a session
loaded "user/$uid"
files system /Library/LaunchDaemons
files "gui/$uid" /Library/LaunchAgents
files "gui/$uid" "$HOME/Library/LaunchAgents"
