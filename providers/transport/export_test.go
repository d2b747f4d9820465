package transport

// Wait is the pause of a download before another try.
var Wait = wait
