package orca

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// CgroupCPU reads the processor time of this process's control group, version 2: what a
// container has used of what it was granted.
type CgroupCPU struct {
	root  fs.FS
	group string // the group's folder
}

// NewCgroupCPU finds the control group of this process. root is the file system from its root:
// os.DirFS("/"). The error says that there is no control group of version 2 with the processor's
// statistics, as outside of Linux.
//
//	cpu, err := orca.NewCgroupCPU(os.DirFS("/"))
//	if err == nil {
//		config.CPU = cpu.Read
//	}
func NewCgroupCPU(root fs.FS) (*CgroupCPU, error) {
	const mount = "sys/fs/cgroup"
	data, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("orca: no control group: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		// "0::/path"; other numbers are of version 1.
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !ok {
			continue
		}
		// In a container that sees its own group as the root, the path is of the host.
		for _, dir := range [...]string{path.Join(mount, group), mount} {
			c := &CgroupCPU{root: root, group: dir}
			if _, _, err = c.Read(); err == nil {
				return c, nil
			}
		}
		return nil, err
	}
	return nil, errors.New("orca: no control group of version 2")
}

// Read returns the processor time used so far, in seconds, and the processors granted: the
// quota where there is one, else what Go runs on. It reads two small files, some ten
// microseconds.
func (c *CgroupCPU) Read() (seconds, processors float64, err error) {
	data, err := fs.ReadFile(c.root, path.Join(c.group, "cpu.stat"))
	if err != nil {
		return 0, 0, fmt.Errorf("orca: no processor time: %w", err)
	}
	used := ""
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "usage_usec "); ok {
			used = strings.TrimSpace(v)
		}
	}
	micros, err := strconv.ParseUint(used, 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("orca: usage_usec is %q, want a number", used)
	}
	return float64(micros) / 1e6, c.granted(), nil
}

// granted returns the quota in processors. The root group has no such file, and any group may have
// more than one above it that has less; those are not seen from inside a container.
func (c *CgroupCPU) granted() float64 {
	all := float64(runtime.GOMAXPROCS(0))
	data, err := fs.ReadFile(c.root, path.Join(c.group, "cpu.max"))
	if err != nil {
		return all
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	q, err1 := strconv.ParseFloat(quota, 64) // "max" is an error
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || !(q > 0) || !(p > 0) {
		return all
	}
	return q / p
}
