// Package store keeps the sandbox's state as JSON files that a person may read and edit. It writes
// them atomically, names the file and line that cannot be read, and guards them with a lock between
// processes.
package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ReadJSON decodes the file at path into v. An unknown field is an error, because a mistyped name in
// an edited file would otherwise be lost silently.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read sandbox state: %w", err)
	}
	return Decode(path, data, v)
}

// Decode decodes data, the content of the file at path, as strictly as ReadJSON.
func Decode(path string, data []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("%s:%d: not valid sandbox state: %w; fix: correct the file or delete it", path, lineOf(data, decoder, err), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s:%d: not valid sandbox state: more text after the end of the object; fix: correct the file or delete it",
			path, 1+bytes.Count(data[:decoder.InputOffset()], []byte("\n")))
	}
	return nil
}

// lineOf returns the line of a decoding error, as precisely as encoding/json reports it.
func lineOf(data []byte, decoder *json.Decoder, err error) int {
	offset := decoder.InputOffset()
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = kind.Offset
	}
	offset = min(max(offset, 0), int64(len(data)))
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// Encode returns v as indented JSON.
func Encode(v any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encode sandbox state: %w", err)
	}
	return buffer.Bytes(), nil
}

// WriteJSON atomically replaces the file at path with v as indented JSON.
func WriteJSON(path string, v any) error {
	data, err := Encode(v)
	if err != nil {
		return err
	}
	return WriteFile(path, data)
}

// WriteFile atomically replaces the file at path with data.
func WriteFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write sandbox state %s: %w", path, err)
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write sandbox state %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}
