package drift

// Fingerprint is that of an item.
func Fingerprint(i Item) string { return fingerprint(i) }
