exec sudo -k -n true
