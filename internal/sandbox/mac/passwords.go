package mac

// sudoSwitches are the doubts about sudo and the account policy.
func sudoSwitches() []Switch { return nil }
