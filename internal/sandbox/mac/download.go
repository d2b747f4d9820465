package mac

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
)

// downloadSwitch is how downloads behave.
const downloadSwitch = "download"

func downloadSwitches() []Switch {
	return []Switch{
		{downloadSwitch, "how a download fails: once halfway, too slow, wrong bytes, 404, no connection (7), reset halfway each time (56), no resume (33)",
			[]string{"steady", "breaks-once", "slow", "wrong-bytes", "gone", "refused", "resets", "no-ranges"}},
		{wholeSwitch, "exit code of curl -f -C - if the file is complete and the server answers 416", []string{"0", "22"}},
	}
}

const wholeSwitch = "curl-resume-of-whole"

// downloads is what a machine has downloaded.
type downloads struct {
	Bytes  int64           `json:"bytes"`
	Broken map[string]bool `json:"broken,omitempty"` // addresses of which a download has broken
}

var downloadsRecord = inFirmware("downloads")

// Downloaded returns how many bytes the machine has downloaded so far.
func (m *Machine) Downloaded() (int64, error) {
	var d downloads
	err := m.asRoot(func(v *visit, _ *proc) error { return v.recall(downloadsRecord, &d) })
	if err != nil {
		return 0, fmt.Errorf("read what the machine in %s has downloaded: %w", m.dir, err)
	}
	return d.Bytes, nil
}

// reply is a server's answer to one request.
type reply struct {
	status int
	size   int64 // of the whole file
	from   int64 // where the body starts in the file
	body   io.ReadCloser
	breaks int64 // bytes of the body before the connection breaks; -1: all
	slow   bool
	reset  bool // it breaks with a reset
}

// curlError is a failure with curl's exit code.
type curlError struct {
	code int
	text string
}

// Error returns curl's message.
func (e curlError) Error() string { return e.text }

// request requests a file from an offset on.
func (p *proc) request(address, host string, from int64) (reply, error) {
	how := ""
	broken := false
	err := p.visit(func(v *visit) error {
		how = v.switched(downloadSwitch)
		if how != "breaks-once" {
			return nil
		}
		var d downloads
		err := v.recall(downloadsRecord, &d)
		broken = d.Broken[address]
		return err
	})
	if err != nil {
		return reply{}, err
	}
	open := p.session.machine.world().Download
	if open == nil {
		return reply{}, curlError{6, "Could not resolve host: " + host}
	}
	file, err := open(address)
	switch {
	case errors.Is(err, ErrNoHost):
		return reply{}, curlError{6, "Could not resolve host: " + host}
	case how == "refused":
		return reply{}, curlError{7, "Failed to connect to " + host + " port 443 after 3 ms: Couldn't connect to server"}
	case errors.Is(err, fs.ErrNotExist), err == nil && how == "gone":
		if file != nil {
			_ = file.Close() // only opened
		}
		return reply{status: 404, body: http.NoBody, breaks: -1}, nil
	case err != nil:
		return reply{}, err
	}
	return served(file, how, from, broken)
}

// served is the answer of a server that has the file.
func served(file io.ReadSeekCloser, how string, from int64, broken bool) (reply, error) {
	size, err := file.Seek(0, io.SeekEnd)
	a := reply{status: 200, size: size, body: file, breaks: -1, slow: how == "slow"}
	switch {
	case err != nil:
	case from > 0 && how == "no-ranges":
		err = curlError{33, "HTTP server does not seem to support byte ranges. Cannot resume."}
	case from > 0 && from >= size:
		a.status, a.body = 416, http.NoBody
		return a, file.Close()
	case from > 0:
		a.status, a.from = 206, from
	}
	if err == nil {
		_, err = file.Seek(a.from, io.SeekStart)
	}
	if err != nil {
		return reply{}, errors.Join(err, file.Close())
	}
	a.reset = how == "resets"
	if how == "breaks-once" && !broken || a.reset && size-a.from > 1 {
		a.breaks = (size - a.from) / 2
	}
	if how == "wrong-bytes" {
		a.body = &garbling{ReadCloser: file}
	}
	return a, nil
}

// garbling flips the last bit of every byte.
type garbling struct{ io.ReadCloser }

// Read reads the changed bytes.
func (g *garbling) Read(data []byte) (int, error) {
	n, err := g.ReadCloser.Read(data)
	for i := range data[:n] {
		data[i] ^= 1
	}
	return n, err
}

// received counts downloaded bytes, and records broken downloads.
func (p *proc) received(address string, bytes int64, broken bool) error {
	return p.visit(func(v *visit) error {
		var d downloads
		if err := v.recall(downloadsRecord, &d); err != nil {
			return err
		}
		d.Bytes += bytes
		if broken {
			if d.Broken == nil {
				d.Broken = map[string]bool{}
			}
			d.Broken[address] = true
		}
		return v.keep(downloadsRecord, d)
	})
}
