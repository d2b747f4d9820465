// Package archtest tests the rules of the whole tree: which packages import which,
// where a step's code is, and which words are used. It has no other code.
package archtest
