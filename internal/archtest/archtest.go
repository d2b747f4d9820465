// Package archtest keeps the directions in which packages import each other and
// the rule that a step has one place. It holds tests alone.
package archtest
