pmset -a autorestart "$1"
