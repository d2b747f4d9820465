package view

// Message is one line of a stream, for the test of its schema.
type Message = message

// Pieces are the words and commands of a text, which are never broken.
var Pieces = pieces

// Wrap breaks a text into lines.
var Wrap = wrap
