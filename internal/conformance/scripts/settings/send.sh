# Takes a file, which comes on standard input. $1 is its name.
cat >"$home/$1"
