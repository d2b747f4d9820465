package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	t.Parallel()
	picture := draw([]string{"plain \x1b[1;31mred & bold\x1b[0m\r", "  \x1b[38;5;2mgreen\x1b[39m end"}, 40)
	for _, part := range []string{
		`>plain </text>`,
		` font-weight="bold" fill="` + palette[1] + `">red &amp; bold</text>`,
		` fill="` + palette[2] + `">green</text>`,
		`> end</text>`,
	} {
		if !strings.Contains(picture, part) {
			t.Errorf("no %s in\n%s", part, picture)
		}
	}
	if strings.ContainsRune(picture, '\x1b') {
		t.Error("an escape sequence is left")
	}
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
