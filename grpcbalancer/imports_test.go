package grpcbalancer

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What gRPC changes from release to release is met in one file, so that a release that
// does is one file's work.
func TestOneFileTouchesGRPCsExperimentalPackages(t *testing.T) {
	steady := []string{
		"google.golang.org/grpc", "google.golang.org/grpc/balancer", "google.golang.org/grpc/codes",
		"google.golang.org/grpc/connectivity", "google.golang.org/grpc/health/grpc_health_v1", "google.golang.org/grpc/metadata",
		"google.golang.org/grpc/resolver", "google.golang.org/grpc/status",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if name == "experimental.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(path, "google.golang.org/grpc") && !slices.Contains(steady, path) {
				t.Errorf("%s imports %s, which belongs into experimental.go", name, path)
			}
		}
	}
}
