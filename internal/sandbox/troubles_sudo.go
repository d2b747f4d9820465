package sandbox

// sudoTroubles are the incidents of sudo.
func sudoTroubles() []trouble { return nil }
