sw_vers -productVersion
