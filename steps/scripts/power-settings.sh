pmset -g custom
