exec scutil --get "$1"
