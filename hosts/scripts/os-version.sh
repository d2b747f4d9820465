exec sw_vers -productVersion
