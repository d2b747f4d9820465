package view

// Message is one line of a stream, for the test of its schema.
type Message = message
