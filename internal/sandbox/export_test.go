package sandbox

// AddressForTest gives the public address of the host in position i of a fresh world.
func AddressForTest(i int) string { return publicIP(i).String() }
