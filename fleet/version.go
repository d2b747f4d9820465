package fleet

// Version is macfleet's own version. It is a constant of the source, so that a
// binary says the same whoever built it.
const Version = "0.1.0"
