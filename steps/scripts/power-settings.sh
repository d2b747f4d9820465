exec pmset -g custom
