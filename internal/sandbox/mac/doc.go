// Package mac simulates one Mac mini: its files, its shell with the tools of macOS, and its SSH
// server. All of its state is in a real folder that a person may read and edit.
//
// What the simulation does not model fails loudly: an unknown tool is "command not found" with status
// 127, and an unknown option of a known tool is "option not modelled" with status 64.
package mac
