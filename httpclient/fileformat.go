package httpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/evenkeel/evenkeel"
)

// fileList is the list of a file, as far as it is read.
type fileList struct {
	path     string
	list     []Address
	lines    []int // of each address
	problems []error
	more     int
}

// parseFile reads the content of a File. Its error names every problem, with its line.
func parseFile(path string, content []byte) ([]Address, error) {
	l := fileList{path: path}
	if isJSON(content) {
		l.parseJSON(content)
	} else {
		l.parseLines(content)
	}
	if len(l.problems) == 0 {
		_, err := locateAt(l.list, 0, func(i int) string { return l.place(l.lines[i]) })
		return l.list, err
	}
	if l.more > 0 {
		l.problems = append(l.problems, fmt.Errorf("httpclient: and %d more problems in the file", l.more))
	}
	return nil, errors.Join(l.problems...)
}

func (l *fileList) place(line int) string { return fmt.Sprintf("File %q line %d", l.path, line) }

func (l *fileList) problem(line int, format string, args ...any) {
	if len(l.problems) == maxProblems {
		l.more++
		return
	}
	l.problems = append(l.problems, fmt.Errorf("httpclient: %s: %s", l.place(line), fmt.Sprintf(format, args...)))
}

// add takes an address over. It reports whether there is room for more.
func (l *fileList) add(line int, a Address) bool {
	if len(l.list) == maxAddresses {
		l.problem(line, "there are %d addresses before it, want no more", maxAddresses)
		return false
	}
	l.list = append(l.list, a)
	l.lines = append(l.lines, line)
	return true
}

// isJSON reports whether the content is an array. A line of the other form can begin with a
// bracket as well, but only with an IPv6 address behind it.
func isJSON(content []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(content, " \t\r\n"), []byte("["))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(`"{],`), rest[0]) >= 0)
}

func (l *fileList) parseLines(content []byte) {
	n := 0
	for text := range bytes.Lines(content) {
		n++
		fields := strings.Fields(string(text))
		for i, f := range fields {
			if f[0] == '#' {
				fields = fields[:i]
				break
			}
		}
		if len(fields) == 0 {
			continue
		}
		a := Address{Addr: fields[0]}
		if len(fields) > 1 {
			w, err := strconv.ParseFloat(fields[1], 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) || len(fields) > 2 {
				l.problem(n, "the text is %q, want an address, and a weight or none", clip(strings.TrimSpace(string(text))))
				continue
			}
			a.Weight = evenkeel.WeightOf(w)
		}
		if !l.add(n, a) {
			return
		}
	}
	if len(l.list)+len(l.problems) == 0 {
		l.problem(max(n, 1), "the file has 0 addresses, want at least 1, or the JSON array [] for none")
	}
}

// fileEntry is an address with its weight in JSON.
type fileEntry struct {
	Addr   *string  `json:"addr"`
	Weight *float64 `json:"weight"`
}

func (l *fileList) parseJSON(content []byte) {
	dec := json.NewDecoder(bytes.NewReader(content))
	line := func(offset int64) int {
		return 1 + bytes.Count(content[:min(offset, int64(len(content)))], []byte("\n"))
	}
	bad := func(err error) {
		at := dec.InputOffset() // the end of what was read; the value with the error comes after it
		for at < int64(len(content)) && strings.IndexByte(" \t\r\n,", content[at]) >= 0 {
			at++
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err, at = io.ErrUnexpectedEOF, int64(len(content))
		}
		l.problem(line(at), "the text is no JSON array: %v", err)
	}
	if _, err := dec.Token(); err != nil { // the bracket
		bad(err)
		return
	}
	counted, lines := int64(0), 1 // so that lines are counted once
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			bad(err)
			return
		}
		start := dec.InputOffset() - int64(len(raw))
		lines += bytes.Count(content[counted:start], []byte("\n"))
		counted = start
		a, err := parseEntry(raw)
		if err != nil {
			l.problem(lines, "the value is %q, %v", clip(string(raw)), err)
		} else if !l.add(lines, a) {
			return
		}
	}
	if _, err := dec.Token(); err != nil {
		bad(err)
		return
	}
	if rest := bytes.TrimSpace(content[dec.InputOffset():]); len(rest) > 0 {
		l.problem(line(dec.InputOffset()), "the text after the array is %q, want none", clip(string(rest)))
	}
}

var errEntry = errors.New(`want a string, or an object of "addr" and "weight"`)

func parseEntry(raw json.RawMessage) (Address, error) {
	var e fileEntry
	switch raw[0] {
	case '"':
		err := json.Unmarshal(raw, &e.Addr)
		if err != nil {
			return Address{}, errEntry
		}
	case '{':
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&e); err != nil || e.Addr == nil {
			return Address{}, errEntry
		}
	default:
		return Address{}, errEntry
	}
	a := Address{Addr: *e.Addr}
	if e.Weight != nil {
		a.Weight = evenkeel.WeightOf(*e.Weight)
	}
	return a, nil
}
