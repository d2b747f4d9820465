package plan

// Rollout says in which order the disturbed hosts of a fleet start: the canary is the first wave.
type Rollout struct {
	Fleet  string     `json:"fleet"`
	AtOnce int        `json:"at_once"`        // healthy hosts that are away at the same time, at most
	Canary int        `json:"canary"`         // hosts that go first, and alone; 0: the first wave is as the others
	Soak   string     `json:"soak,omitempty"` // how long the canary must stay Ready before the others start
	Waves  [][]string `json:"waves"`          // names of hosts
	// Trials are hosts that have got the same already and are not Ready: nobody starts before they are.
	Trials []string `json:"trials,omitempty"`
}
