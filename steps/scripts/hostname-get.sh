scutil --get "$1"
