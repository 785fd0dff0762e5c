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
	info, err := os.Stat(s.html)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		var f *os.File
		if f, err = os.CreateTemp(filepath.Dir(s.html), ".fleetsim-*"); err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
	case err == nil && info.IsDir():
		err = errors.New("is a directory")
	case err == nil:
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
