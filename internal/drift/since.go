package drift

// Changes are what is different from an earlier report.
type Changes struct {
	New       []Item `json:"new"`       // was not there
	Stays     []Item `json:"stays"`     // was there
	Kept      []Item `json:"kept"`      // was there, and nobody can say whether it still is
	Recovered []Item `json:"recovered"` // was there, was looked for, and is gone or is ignored now
}

// After compares the report with an earlier one, of which it takes what was known:
// its items, and what it had kept itself. What could not be asked now keeps what was
// known of it, so that the fingerprint stays as it was until somebody knows better.
func (r Report) After(known []Item) Report {
	c := Changes{New: []Item{}, Stays: []Item{}, Kept: []Item{}, Recovered: []Item{}}
	before := make(map[string]bool, len(known))
	for _, i := range known {
		before[i.Fingerprint] = true
	}
	there := make(map[string]bool, len(r.Items))
	for _, i := range r.Items {
		there[i.Fingerprint] = true
		if before[i.Fingerprint] {
			c.Stays = append(c.Stays, i)
		} else {
			c.New = append(c.New, i)
		}
	}
	ignored := make(map[string]bool, len(r.Ignored))
	for _, i := range r.Ignored {
		ignored[i.Fingerprint] = true
	}
	for _, i := range known {
		switch {
		case there[i.Fingerprint]:
		case !ignored[i.Fingerprint] && r.unseen(i):
			c.Kept = append(c.Kept, i)
		default:
			c.Recovered = append(c.Recovered, i)
		}
		there[i.Fingerprint] = true // whatever is told twice
	}
	r.Since = &c
	r.Fingerprint = fingerprintOf(r.Complete, r.Known()...)
	return r
}

func (r Report) unseen(i Item) bool {
	for _, u := range r.Unseen {
		if u.Covers(i) {
			return true
		}
	}
	return false
}
