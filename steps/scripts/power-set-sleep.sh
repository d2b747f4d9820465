pmset -a sleep "$1" displaysleep "$2" disksleep "$3"
