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
	// Hosts that would not start in this run, and the limit that keeps the first of them.
	Left       []string `json:"left,omitempty"`
	LeftReason string   `json:"left_reason,omitempty"`
	Seconds    int      `json:"expected_seconds,omitempty"` // until the last of its hosts is done
}

// Forecast is how long an apply of the plan takes if nothing fails.
type Forecast struct {
	Seconds  int  `json:"expected_seconds"`       // with the comparison at the end
	Runs     int  `json:"recorded_runs"`          // how many recorded runs it is based on; 0: only on defaults
	Defaults bool `json:"defaults"`               // some of the work is in no recorded run, so defaults count for it
	Pods     bool `json:"pods_unknown,omitempty"` // Pods are evicted, and no recorded run says how long they take to end
	Late     int  `json:"after_window,omitempty"` // hosts that would start after the maintenance window closes, so the run defers them
}
