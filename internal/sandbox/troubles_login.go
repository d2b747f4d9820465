package sandbox

// loginTroubles are the incidents of login.
func loginTroubles() []trouble { return nil }
