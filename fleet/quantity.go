package fleet

import (
	"math"
	"strconv"
	"strings"
)

// Bytes returns how many bytes a quantity is, written as Kubernetes does it: a
// whole number, and behind it nothing, k, M, G, T, Ki, Mi, Gi or Ti. It reports
// false for anything else, and for what no number holds.
func Bytes(quantity string) (int64, bool) {
	digits := strings.TrimRight(quantity, "kKMGTi")
	units := map[string]int64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
	unit, known := units[quantity[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || !known || int64(n) > math.MaxInt64/unit {
		return 0, false
	}
	return int64(n) * unit, true
}

// CheckQuantity says what is wrong with a quantity, or "".
func CheckQuantity(text string) string {
	if _, ok := Bytes(text); !ok {
		return `it must be a whole number of bytes as Kubernetes writes it, such as "2Gi" or "512Mi"`
	}
	return ""
}
