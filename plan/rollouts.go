package plan

// Rollout says in which order the disturbed hosts of a fleet start: the canary is the first wave.
type Rollout struct {
	Fleet  string     `json:"fleet"`
	AtOnce int        `json:"at_once"`        // how many healthy hosts may be unavailable at the same time
	Canary int        `json:"canary"`         // hosts that go first, by themselves; 0: the first wave is like the others
	Soak   string     `json:"soak,omitempty"` // how long the canary must stay Ready before the others start
	Waves  [][]string `json:"waves"`          // names of hosts
	// Trials are hosts that already have the change but are not Ready: no other host starts before they are.
	Trials []string `json:"trials,omitempty"`
}
