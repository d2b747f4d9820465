sudo -k -n true
