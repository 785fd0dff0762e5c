package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// html checks that the page can be written, and leaves nothing behind.
func (r *reader) html(s *settings) {
	if s.html == "" {
		return
	}
	if s.html == "-" {
		r.refuse("html", "a file that can be written, /dev/stdout being one, or ./- if that is its name")
		return
	}
	info, err := os.Stat(s.html)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var f *os.File
		if f, err = os.CreateTemp(filepath.Dir(s.html), ".fleetsim-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	case err == nil && info.IsDir():
		err = errors.New("is a directory")
	case err == nil && info.Mode().IsRegular():
		// Others are not tried: opening a pipe waits for its reader, and closing it ends that.
		var f *os.File
		if f, err = os.OpenFile(s.html, os.O_WRONLY, 0); err == nil {
			err = f.Close()
		}
	}
	if err == nil {
		return
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	r.refuse("html", "a file that can be written: %v", err)
}

// writePage writes the page if there is to be one.
func writePage(r *report) error {
	if r.html == "" {
		return nil
	}
	text, err := page(r)
	if err != nil {
		return err
	}
	return os.WriteFile(r.html, text, 0o666)
}
