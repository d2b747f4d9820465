exec mdutil -a -i "$1"
