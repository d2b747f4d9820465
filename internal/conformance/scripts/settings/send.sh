# Saves a file from standard input. $1 is its name.
cat >"$home/$1"
