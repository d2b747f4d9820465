exec dscl . -read "/Users/${USER:-$(id -un)}" AuthenticationAuthority
