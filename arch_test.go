package evenkeel_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/evenkeel/evenkeel"

// importArrows holds, for each package of the module, which others of the module it may import.
// Arrows point down only, towards packages that know less; tests are free. Paths are relative to the
// module, "." is the root package.
var importArrows = map[string][]string{
	"ewma":            {},
	"hash":            {},
	"picker":          {"ewma", "hash"},
	"subset":          {},
	"outlier":         {"picker"},
	"orca":            {},
	"orca/orcagrpc":   {"orca"},
	"orca/orcahttp":   {"orca"},
	"internal/limit":  {},
	"internal/health": {},
	"internal/chaos":  {},
	"internal/probe":  {".", "internal/health"},
	".":               {"picker", "ewma", "subset", "outlier", "orca", "internal/limit", "internal/health"},
	"internal/config": {".", "picker", "ewma", "subset", "outlier", "orca"},

	// Adapters differ in transport only and never import each other.
	"grpcbalancer":            {".", "picker", "outlier", "hash", "orca", "orca/orcagrpc", "internal/config", "internal/health", "internal/probe"},
	"httpclient":              {".", "picker", "hash", "orca", "orca/orcahttp", "internal/config", "internal/health", "internal/limit", "internal/probe"},
	"httpclient/grpcresolver": {"httpclient", "."},

	"internal/sim": {".", "picker", "ewma", "outlier", "orca"},

	// What tests measure with, hence in nobody's list.
	"internal/testcost": {},

	"cmd/fleetsim":        {".", "picker", "subset", "internal/sim", "internal/config"},
	"examples/affinity":   {".", "picker", "httpclient"},
	"examples/http":       {".", "httpclient"},
	"examples/orca":       {".", "orca", "orca/orcahttp", "picker", "httpclient"},
	"examples/quickstart": {".", "grpcbalancer", "httpclient"},

	"examples/grpc/client":     {".", "grpcbalancer", "examples/grpc/deployment"},
	"examples/grpc/server":     {"grpcbalancer", "examples/grpc/deployment"},
	"examples/grpc/deployment": {},
}

// coreMayLink are the packages outside the standard library that the core may reach.
var coreMayLink = []string{"github.com/cespare/xxhash/v2"}

// coreMustNotLink are parts of the standard library that the core must not reach, not even through
// another package: a transport, and places to write to.
var coreMustNotLink = []string{"net/http", "log", "log/slog"}

// listedPackage is what go list says about one package.
type listedPackage struct {
	ImportPath string
	Name       string
	Dir        string
	Standard   bool
	GoFiles    []string
	Imports    []string
	Deps       []string
}

// inModule reports whether the package belongs to this module.
func (p listedPackage) inModule() bool {
	return p.ImportPath == modulePath || strings.HasPrefix(p.ImportPath, modulePath+"/")
}

// relative returns the package's path within the module, "." for the root package.
func (p listedPackage) relative() string {
	return path.Clean("./" + strings.TrimPrefix(p.ImportPath, modulePath))
}

// listPackages returns the module's packages and all that they reach, by import path.
func listPackages(t *testing.T) map[string]listedPackage {
	t.Helper()
	touchTree(t)
	cmd := exec.Command("go", "list", "-deps",
		"-json=ImportPath,Name,Dir,Standard,GoFiles,Imports,Deps", "./...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	all := map[string]listedPackage{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all[p.ImportPath] = p
	}
}

// touchTree reads every directory of the module. The go command reuses a test's result until a file
// changes that the test itself has looked at, and it does not see what go list looks at.
func touchTree(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// corePackages returns the root package and those of the module that it reaches.
func corePackages(t *testing.T) (core []listedPackage, all map[string]listedPackage) {
	t.Helper()
	all = listPackages(t)
	root, ok := all[modulePath]
	if !ok {
		t.Fatalf("go list does not know %s", modulePath)
	}
	core = []listedPackage{root}
	for _, dep := range root.Deps {
		if p := all[dep]; p.inModule() {
			core = append(core, p)
		}
	}
	return core, all
}

func TestImportsFollowTheArrows(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range listPackages(t) {
		if !p.inModule() {
			continue
		}
		rel := p.relative()
		seen[rel] = true
		allowed, known := importArrows[rel]
		if !known {
			t.Errorf("%s is not in importArrows: add it there with the packages below it that it may import", rel)
			continue
		}
		for _, imp := range p.Imports {
			to := listedPackage{ImportPath: imp}
			if to.inModule() && !slices.Contains(allowed, to.relative()) {
				t.Errorf("%s imports %s, want only %q", rel, to.relative(), allowed)
			}
		}
	}
	for rel := range importArrows {
		if !seen[rel] {
			t.Errorf("%s is in importArrows and not in the module: remove it there", rel)
		}
	}
}

func TestCoreReachesOnlyTheStandardLibraryAndHashing(t *testing.T) {
	core, all := corePackages(t)
	for _, p := range core {
		for _, dep := range p.Deps {
			d := all[dep]
			switch {
			case d.inModule(), slices.Contains(coreMayLink, dep):
			case !d.Standard:
				t.Errorf("%s reaches %s, want only the standard library and %q", p.relative(), dep, coreMayLink)
			case slices.Contains(coreMustNotLink, dep):
				t.Errorf("%s reaches %s, which the core must not", p.relative(), dep)
			}
		}
	}
}

// Who only balances HTTP links no gRPC.
func TestHTTPClientReachesNoGRPC(t *testing.T) {
	for _, dep := range listPackages(t)[modulePath+"/httpclient"].Deps {
		if strings.HasPrefix(dep, "google.golang.org/") {
			t.Errorf("httpclient reaches %s", dep)
		}
	}
}

// The core is driven by its callers alone: it can be closed by forgetting it, and simulations and
// tests can replay it with instants of their own.
func TestCoreStartsNoGoroutineAndNoTimer(t *testing.T) {
	core, _ := corePackages(t)
	for _, p := range core {
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for pos, what := range startedBy(file) {
				t.Errorf("%s/%s:%d: %s in a core package", p.relative(), name, fset.Position(pos).Line, what)
			}
		}
	}
}

// startedBy returns where a file starts a goroutine, or names something of package time or context
// that starts a timer or waits.
func startedBy(file *ast.File) map[token.Pos]string {
	banned := []string{
		"time.NewTimer", "time.NewTicker", "time.AfterFunc", "time.After", "time.Tick", "time.Sleep",
		"context.AfterFunc", "context.WithTimeout", "context.WithDeadline",
	}
	imported := map[string]string{} // name in this file → import path
	for _, spec := range file.Imports {
		full := strings.Trim(spec.Path.Value, "`\"")
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = full
	}
	found := map[token.Pos]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found[n.Pos()] = "go statement"
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				if full := imported[x.Name] + "." + n.Sel.Name; slices.Contains(banned, full) {
					found[n.Pos()] = full
				}
			}
		}
		return true
	})
	return found
}
