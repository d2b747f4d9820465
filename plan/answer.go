package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Answer is what a probe's or a change's script said.
type Answer struct {
	Exit   int
	Stdout string
	Stderr string
}

// answerJSON is an answer in documents.
type answerJSON struct {
	Exit   int  `json:"exit"`
	Stdout text `json:"stdout"`
	Stderr text `json:"stderr"`
}

// MarshalJSON writes the answer with every byte that the host printed.
func (a Answer) MarshalJSON() ([]byte, error) {
	return unescaped(answerJSON{a.Exit, text(a.Stdout), text(a.Stderr)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Answer) UnmarshalJSON(content []byte) error {
	var in answerJSON
	err := json.Unmarshal(content, &in)
	*a = Answer{in.Exit, string(in.Stdout), string(in.Stderr)}
	return err
}

// text is a JSON string, or {"base64": …} where it is not valid UTF-8: JSON
// cannot hold such bytes, and a host may print any.
type text string

// MarshalJSON writes the text, or its bytes.
func (t text) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(string(t)) {
		return json.Marshal(map[string][]byte{"base64": []byte(t)})
	}
	return unescaped(string(t))
}

// UnmarshalJSON reads either form.
func (t *text) UnmarshalJSON(content []byte) error {
	if len(content) == 0 || content[0] != '{' {
		return json.Unmarshal(content, (*string)(t))
	}
	var b struct {
		Base64 []byte `json:"base64"`
	}
	if err := json.Unmarshal(content, &b); err != nil {
		return err
	}
	if b.Base64 == nil {
		return fmt.Errorf("a text that is an object has no base64")
	}
	*t = text(b.Base64)
	return nil
}

// unescaped is a value in JSON, with <, > and & as they are.
func unescaped(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
