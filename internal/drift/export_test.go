package drift

// Judged returns every code as often as it was judged.
func Judged() []string {
	var out []string
	for _, codes := range judged() {
		out = append(out, codes...)
	}
	return out
}
