package drift

// Judged returns every code as often as it was judged.
func Judged() []string {
	var out []string
	for _, codes := range judged() {
		out = append(out, codes...)
	}
	return out
}

// Fingerprint is that of an item.
func Fingerprint(i Item) string { return fingerprint(i) }
