package mac

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// curlCall is a command line of curl.
type curlCall struct {
	*proc
	address, output, write                           string
	fail, silent, errors, head, resume, again, folds bool
	speed                                            int
	speedTime, maxTime                               string
	retries                                          int
}

// curlWords are the known long options, with the letters that some have.
func curlWords() map[string]string {
	return map[string]string{
		"--fail": "-f", "--silent": "-s", "--show-error": "-S", "--location": "-L", "--output": "-o", "--continue-at": "-C",
		"--write-out": "-w", "--head": "-I", "--max-time": "-m", "--speed-limit": "-Y", "--speed-time": "-y", "--remote-name": "-O",
		"--disable": "-q", "--fail-with-body": "-f", "--user-agent": "-A",
	}
}

func curl(p *proc) int {
	c := curlCall{proc: p}
	if status, ok := c.parse(p.args()); !ok {
		return status
	}
	if c.address == "" {
		_, _ = c.stderr.Write([]byte("curl: (2) no URL specified\n"))
		return exitUsage
	}
	var err error
	for range 1 + c.retries {
		if err = c.transfer(); err == nil || !c.again || c.ctx.Err() != nil {
			break
		}
	}
	var own curlError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &own):
		own = curlError{exitFailed, err.Error()}
	}
	if !c.silent || c.errors {
		_, _ = fmt.Fprintf(c.stderr, "curl: (%d) %s\n", own.code, own.text)
	}
	return own.code
}

// transfer makes one request and writes the answer.
func (c *curlCall) transfer() error {
	at, err := url.Parse(c.address)
	switch {
	case err != nil || at.Host == "":
		return curlError{3, "URL rejected: Malformed input to a URL function"}
	case at.Scheme == "file" || at.Scheme != "https" && at.Scheme != "http":
		return curlError{1, "Protocol \"" + at.Scheme + "\" not supported"}
	case at.Scheme == "http" || at.Hostname() == "localhost" || strings.HasPrefix(at.Hostname(), "127."):
		c.report(reply{}, 0)
		return curlError{7, "Failed to connect to " + at.Hostname() + " port " + portOf(at) + " after 0 ms: Couldn't connect to server"}
	}
	from := c.present()
	a, err := c.request(c.address, at.Hostname(), from)
	if err != nil {
		c.report(reply{}, 0)
		return err
	}
	defer a.body.Close() // it is only read
	if c.head {
		return c.headers(a)
	}
	return c.receive(a, from)
}

func portOf(at *url.URL) string {
	if port := at.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[at.Scheme]
}

// present returns how much of the file already exists.
func (c *curlCall) present() (size int64) {
	if !c.resume || c.output == "" {
		return 0
	}
	_ = c.visit(func(v *visit) error {
		n, err := v.find(c.user, c.dir, c.output, true)
		if err == nil && n.plain() {
			size = n.info.Size()
		}
		return nil
	})
	return size
}

func (c *curlCall) headers(a reply) error {
	text := map[int]string{200: "200", 404: "404"}[a.status]
	c.printf("HTTP/2 %s \r\ncontent-length: %d\r\naccept-ranges: bytes\r\ncontent-type: application/octet-stream\r\n\r\n", text, a.size)
	c.report(a, 0)
	if c.fail && a.status >= 400 {
		return curlError{22, "The requested URL returned error: " + text}
	}
	return nil
}

// report prints the format of -w.
func (c *curlCall) report(a reply, got int64) {
	if c.write == "" {
		return
	}
	code := fmt.Sprintf("%03d", a.status)
	c.printf("%s", strings.NewReplacer("%{http_code}", code, "%{response_code}", code, "%{size_download}", strconv.FormatInt(got, 10),
		"%{url_effective}", c.address, "%{url}", c.address, `\n`, "\n", `\t`, "\t", "%%", "%").Replace(c.write))
}

// receive writes the body of an answer.
func (c *curlCall) receive(a reply, from int64) error {
	switch {
	case a.status == 416:
		refuses := false
		err := c.visit(func(v *visit) error {
			refuses = v.codeSwitched(wholeSwitch) != 0
			return nil
		})
		c.report(a, 0)
		if refuses && c.fail {
			err = curlError{22, "The requested URL returned error: 416"}
		}
		return err
	case a.status == 404 && c.fail:
		c.report(a, 0)
		return curlError{22, "The requested URL returned error: 404"}
	case a.status == 404:
		a.body = io.NopCloser(strings.NewReader("<html><body><h1>404 Not Found</h1></body></html>\n"))
	case a.slow && (c.speed > 0 || c.maxTime != ""):
		return c.tooSlow(a)
	}
	out, err := c.target(from)
	if err != nil {
		return curlError{23, "client returned ERROR on write, 16384 bytes received: " + c.output + ": " + why(err)}
	}
	got, err := c.copyBody(out, a)
	if failed := out.Close(); err == nil && failed != nil {
		err = curlError{23, why(failed)}
	}
	if failed := c.received(c.address, got, a.breaks >= 0); err == nil {
		err = failed
	}
	c.report(a, got)
	return err
}

func (c *curlCall) tooSlow(a reply) error {
	c.report(a, 0)
	if c.speed > 0 {
		seconds := c.speedTime
		if seconds == "" {
			seconds = "30"
		}
		return curlError{28, fmt.Sprintf("Operation too slow. Less than %d bytes/sec transferred the last %s seconds", c.speed, seconds)}
	}
	return curlError{28, fmt.Sprintf("Operation timed out after %s000 milliseconds with 0 out of %d bytes received", c.maxTime, a.size-a.from)}
}

// target returns the file for the body.
func (c *curlCall) target(from int64) (io.WriteCloser, error) {
	switch {
	case c.output == "" || c.output == "-":
		return sink{c.stdout}, nil
	case from > 0:
		return c.create(c.output, os.O_APPEND)
	}
	return c.create(c.output, os.O_TRUNC)
}

func (c *curlCall) copyBody(out io.Writer, a reply) (got int64, err error) {
	body := io.Reader(a.body)
	if a.breaks >= 0 {
		body = io.LimitReader(body, a.breaks)
	}
	got, err = io.Copy(out, body)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return got, curlError{23, "Failure writing output to destination, passed 16384 returned 0"}
	case err != nil:
		return got, curlError{23, "Failure writing output to destination: " + why(err)}
	case a.breaks >= 0 && a.reset:
		return got, curlError{56, "Recv failure: Connection reset by peer"}
	case a.breaks >= 0:
		return got, curlError{18, fmt.Sprintf("transfer closed with %d bytes remaining to read", a.size-a.from-got)}
	}
	return got, nil
}
