package httpclient

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// paper is a file that is written in a bubble's time.
type paper struct {
	t    *testing.T
	path string
}

func newPaper(t *testing.T, text string, age time.Duration) paper {
	p := paper{t, filepath.Join(t.TempDir(), "backends")}
	p.write(text, age)
	return p
}

func (p paper) ok(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// write writes in place, as if it had been done some time ago.
func (p paper) write(text string, age time.Duration) {
	p.t.Helper()
	p.ok(os.WriteFile(p.path, []byte(text), 0o600))
	p.touch(age)
}

func (p paper) touch(age time.Duration) {
	p.t.Helper()
	at := time.Now().Add(-age)
	p.ok(os.Chtimes(p.path, at, at))
}

// replace renames a new file into place.
func (p paper) replace(text string) {
	p.t.Helper()
	next := paper{p.t, p.path + ".new"}
	next.write(text, time.Second)
	p.ok(os.Rename(next.path, p.path))
}

func (p paper) expect(n *noted, what, want string, lists, errs int) {
	p.t.Helper()
	got, _ := n.text()
	if l, e := n.counts(); got != want || l != lists || e != errs {
		p.t.Errorf("%s: %s after %d lists and %d errors, want %s, %d, %d", what, got, l, e, want, lists, errs)
	}
}

const aLook = 5600 * time.Millisecond // more than the time between two looks

func TestFileIsReadAgainWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper(t, "a:1\n", time.Minute)
		watching(t, &File{Path: p.path}, "svc.test", func(n *noted) {
			p.expect(n, "at once", "a:1", 1, 0)
			time.Sleep(time.Hour)
			p.expect(n, "without a change", "a:1", 1, 0)
			p.touch(0)
			time.Sleep(2 * aLook)
			p.expect(n, "touched", "a:1", 1, 0)
			p.write("a:1\nb:1\n", 0)
			time.Sleep(2 * aLook)
			p.expect(n, "written", "a:1 b:1", 2, 0)
			p.replace(`["c:1"]`)
			time.Sleep(aLook)
			p.expect(n, "replaced", "c:1", 3, 0)
			p.replace(`["d:1"]`) // of the same size, and an older time than the last would do as well
			time.Sleep(aLook)
			p.expect(n, "replaced by one of the same size", "d:1", 4, 0)
			p.replace(`[]`)
			time.Sleep(aLook)
			p.expect(n, "emptied", "", 5, 0)
			p.write("e:1\n", -time.Hour) // by another machine's clock
			time.Sleep(aLook)
			p.expect(n, "written in the future", "e:1", 6, 0)
		})
	})
}

// Same size, same time: an editor, or a file system with coarse times.
func TestFileThatChangesWithinOneTickOfItsTimeIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper(t, "a:1\n", time.Second)
		at := time.Now().Add(-time.Second)
		watching(t, &File{Path: p.path, Every: 100 * time.Millisecond}, "svc.test", func(n *noted) {
			p.ok(os.WriteFile(p.path, []byte("b:1\n"), 0o600))
			p.ok(os.Chtimes(p.path, at, at))
			time.Sleep(time.Second)
			p.expect(n, "written within the tick", "b:1", 2, 0)
		})
	})
}

func TestFileWithAProblemKeepsTheLastGoodList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper(t, "a:1\n", time.Minute)
		tr := stubbed(t, &Transport{Resolver: &File{Path: p.path}}, stubAnswer)
		roundTripAll(t, tr)
		p.replace("a:1\nb:x\n")
		time.Sleep(aLook)
		s := one(t, tr)
		if len(s.Endpoints) != 1 || s.ResolveError == nil || !strings.Contains(s.ResolveError.Error(), p.path+`" line 2: Addr is "b:x", want`) {
			t.Errorf("%v, %v", s.Endpoints, s.ResolveError)
		}
		time.Sleep(time.Minute)
		if s := one(t, tr); s.ResolveErrors != 1 || s.ResolveError == nil {
			t.Errorf("%d errors, %v: want it told once, and to stay", s.ResolveErrors, s.ResolveError)
		}
		p.ok(os.Remove(p.path))
		time.Sleep(aLook)
		if s := one(t, tr); len(s.Endpoints) != 1 || !errors.Is(s.ResolveError, fs.ErrNotExist) {
			t.Errorf("removed: %v, %v", s.Endpoints, s.ResolveError)
		}
		p.write("a:1\n", time.Minute) // the content that was last good
		time.Sleep(aLook)
		if s := one(t, tr); len(s.Endpoints) != 1 || s.ResolveError != nil {
			t.Errorf("back: %v, %v", s.Endpoints, s.ResolveError)
		}
		p.ok(os.Remove(p.path))
		time.Sleep(aLook)
		p.write("a:1\n", time.Minute) // the content that was read last
		time.Sleep(aLook)
		if s := one(t, tr); len(s.Endpoints) != 1 || s.ResolveError != nil {
			t.Errorf("back again: %v, %v", s.Endpoints, s.ResolveError)
		}
		p.replace("svc.test\nsvc.test:80\n") // the same with the target's port, as only the Sink can see
		time.Sleep(aLook)
		if s := one(t, tr); s.ResolveError == nil || !strings.Contains(s.ResolveError.Error(), "the same as") {
			t.Errorf("twice: %v", s.ResolveError)
		}
		tr.Close()
	})
}

func TestFileThatIsBeingWrittenIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaper(t, "a:1\nb:1\n", time.Minute)
		watching(t, &File{Path: p.path, Every: 100 * time.Millisecond}, "svc.test", func(n *noted) {
			for _, part := range []string{"", "c:1\n", "c:1\nd:", "c:1\nd:1\n", "c:1\nd:1\ne:10"} {
				p.write(part, 0) // truncated, then longer
				time.Sleep(300 * time.Millisecond)
				p.expect(n, "while it is written", "a:1 b:1", 1, 0)
			}
			p.write("c:1\nd:1\ne:100\n", 0)
			time.Sleep(1100 * time.Millisecond)
			p.expect(n, "when it was left alone", "c:1 d:1 e:100", 2, 0)
			for range 200 { // 20 s
				p.write("f:1\n", 0)
				time.Sleep(100 * time.Millisecond)
			}
			if got, err := n.text(); got != "c:1 d:1 e:100" || !errors.Is(err, errUnsettled) {
				t.Errorf("written all the time: %s, %v", got, err)
			}
			time.Sleep(1100 * time.Millisecond)
			if got, _ := n.text(); got != "f:1" {
				t.Errorf("then left alone: %s", got)
			}
		})
	})
}

// As Kubernetes shows a ConfigMap: the name is a link to a file in a linked directory.
func TestFileBehindALinkIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"1", "2"} {
			p := paper{t, filepath.Join(dir, name, "backends")}
			p.ok(os.Mkdir(filepath.Dir(p.path), 0o700))
			p.write("v"+name+":1\n", time.Hour)
		}
		p := paper{t, filepath.Join(dir, "backends")}
		p.ok(os.Symlink("1", filepath.Join(dir, "data")))
		p.ok(os.Symlink(filepath.Join("data", "backends"), p.path))
		watching(t, &File{Path: p.path}, "svc.test", func(n *noted) {
			p.expect(n, "first", "v1:1", 1, 0)
			p.ok(os.Symlink("2", filepath.Join(dir, "next")))
			p.ok(os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "data")))
			time.Sleep(aLook)
			p.expect(n, "second", "v2:1", 2, 0)
		})
	})
}

func TestFileThatIsNoneIsRefused(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, maxFileSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(large, old, old); err != nil {
		t.Fatal(err)
	}
	refusesFile(t, dir, "it is no regular file but d")
	refusesFile(t, large, "it has more than 8388608 bytes")
	refusesFile(t, filepath.Join(dir, "other"), "no such file")
}

// refusesFile checks that there is no list, but an error with the path and what is wrong.
func refusesFile(t *testing.T, path, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		watching(t, &File{Path: path}, "svc.test", func(n *noted) {
			if got, err := n.text(); got != "no list" || err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %s, %v, want %q", path, got, err, want)
			}
		})
	})
}

func TestFileSettingsOutOfRangeAreRefused(t *testing.T) {
	err := (&File{Every: 1}).Validate()
	if err == nil || !strings.Contains(err.Error(), `File.Path is "", want`) || !strings.Contains(err.Error(), "File.Every is 1ns, want 0 or at least 100ms") {
		t.Error(err)
	}
	if err := (*File)(nil).Validate(); err == nil {
		t.Error("nil is no File")
	}
}
