//go:build !linux

package main

import "errors"

// onTerminal is only there on Linux, where the pictures are made.
func onTerminal(int, []string) (string, error) { return "", errors.New("pictures are made on Linux") }
