package mac

// hardware is that of one of the provider's types of Mac.
type hardware struct {
	model  string
	cores  int
	memory int // GB
}

// hardwareOf returns the hardware of a server type; an unknown one is an M2-M.
func hardwareOf(serverType string) hardware {
	known := map[string]hardware{
		"M1-M": {"Macmini9,1", 8, 8}, "M2-M": {"Mac14,3", 8, 16}, "M2-L": {"Mac14,12", 10, 16},
		"M4-S": {"Mac16,10", 10, 16}, "M4-SP": {"Mac16,10", 10, 24}, "M4-M": {"Mac16,10", 10, 32}, "M4-XL": {"Mac16,11", 14, 64},
	}
	if h, ok := known[serverType]; ok {
		return h
	}
	return known["M2-M"]
}
