package httpclient

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// File is a Resolver that reads the list from a file, again whenever it has changed, and
// serves every target from it. It must not be changed while it is in use.
//
// The file is text in one of two forms, told apart by how it begins. Either it has a line for each address, as in
// [Address.Addr], with a weight after it or none; what follows a '#' at the beginning of a line or
// after a blank is a comment:
//
//	# eu-west
//	10.0.0.1:8080
//	10.0.0.2:8080 2.5
//	10.0.0.3:8080 0     # drained
//
// Or it is a JSON array of such addresses, or of objects with one and its weight:
//
//	["10.0.0.1:8080", {"addr": "10.0.0.2:8080", "weight": 2.5}]
//
// A file with a problem changes nothing: the last list stays, and Snapshot shows all problems with their lines and
// values. So does a file that is gone. Lines without any address are a problem, too, as a file is
// most often empty because somebody is just writing it; the JSON array [] empties the target.
//
// Replace the file by renaming another to its name, so that nobody sees a half of it. It is not believed before half
// a second has passed since it was written, wherever that was: one that changes more often than that is not read,
// and Snapshot says so after ten seconds.
type File struct {
	// Path is the file's name. Links are followed each time. It may have 8 MiB.
	Path string
	// Every is the time between looks at the file, ±10 %. 0 means 5 s; otherwise at least 100 ms. The file is read
	// only if its time or size has changed.
	Every time.Duration
}

const (
	fileEvery      = 5 * time.Second
	fileEveryLeast = 100 * time.Millisecond
	maxFileSize    = 8 << 20
	// fileSettle is the age at which a file that is written in place is believed to be whole.
	fileSettle = 500 * time.Millisecond
	// maxUnsettled bounds how often in a row that is waited for.
	maxUnsettled = 20
	// fileTick is more than the step of any file system's times: content that is younger when it is read can
	// change once more without its time.
	fileTick = 2 * time.Second
)

// Validate reports whether there is a Path, Every is in its range, and f is not nil. Whether
// there is such a file it does not look.
func (f *File) Validate() error {
	if f == nil {
		return errors.New("httpclient: Resolver is a nil *File, want one with a Path")
	}
	err := checkEvery("File.Every", f.Every, fileEveryLeast)
	if f.Path == "" {
		err = errors.Join(errors.New(`httpclient: File.Path is "", want the name of a file`), err)
	}
	return err
}

// Watch looks at the file until ctx is done.
func (f *File) Watch(ctx context.Context, _ Target, sink Sink) error {
	if err := f.Validate(); err != nil {
		return err
	}
	w := fileWatch{path: f.Path}
	for unsettled := 0; ; {
		wait := spread(cmp.Or(f.Every, fileEvery), lookSpread)
		content, err := w.look()
		switch {
		case err == errUnsettled && unsettled < maxUnsettled:
			unsettled++
			wait = fileSettle
		case err != nil:
			unsettled = 0
			w.seen = nil // what comes after an error is news, even if it is the old content
			sink.Error(fmt.Errorf("httpclient: File %q: %w", f.Path, err))
		case content != nil:
			unsettled = 0
			w.tell(sink, content)
		default:
			unsettled = 0
		}
		if !pause(ctx, wait, time.Time{}, nil) {
			return ctx.Err()
		}
	}
}

// fileWatch is what one Watch remembers.
type fileWatch struct {
	path string

	// Of the content that was last read.
	seen fs.FileInfo // nil: there is none
	at   time.Time
	sum  [sha256.Size]byte
}

var (
	errUnsettled = errors.New("it is being written all the time, want it left alone for half a second")
	errTooLarge  = fmt.Errorf("it has more than %d bytes", maxFileSize)
)

// look returns the file's content if it may be another than last time, and nil otherwise.
func (w *fileWatch) look() (content []byte, err error) {
	before, err := os.Stat(w.path)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() { // opening a pipe would wait for its other end
		return nil, fmt.Errorf("it is no regular file but %v", before.Mode().Type())
	}
	if w.seen != nil && unchanged(w.seen, before) && w.at.Sub(before.ModTime()) > fileTick {
		return nil, nil
	}
	now := time.Now()
	content, after, err := readBounded(w.path)
	if err != nil {
		return nil, err
	}
	if age := now.Sub(after.ModTime()); !unchanged(before, after) || age >= 0 && age < fileSettle {
		return nil, errUnsettled
	}
	old, sum := w.seen, sha256.Sum256(content)
	same := old != nil && sum == w.sum
	w.seen, w.at, w.sum = after, now, sum
	if same {
		return nil, nil
	}
	return content, nil
}

// unchanged reports whether the same file has the same time and size.
func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// readBounded returns the content, never nil, with what the file was like at its end.
func readBounded(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err != nil {
		return nil, nil, err
	}
	if len(content) > maxFileSize {
		return nil, nil, errTooLarge
	}
	info, err := f.Stat()
	return content, info, err
}

// tell gives the content to sink, which shows what is wrong with it.
func (w *fileWatch) tell(sink Sink, content []byte) {
	list, err := parseFile(w.path, bytes.TrimPrefix(content, []byte("\ufeff")))
	if err != nil {
		sink.Error(err)
		return
	}
	// What is refused now, such as an address both with the target's port and without
	// any, will be until the file changes.
	_ = sink.Update(list)
}
