package sandbox

// pfTroubles are the incidents of pf.
func pfTroubles() []trouble { return nil }
