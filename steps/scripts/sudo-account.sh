exec dscl . -read "/Users/$(id -un)" AuthenticationAuthority
