package evenkeel_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publicPackages returns the packages that users can import.
func publicPackages(t *testing.T) []listedPackage {
	t.Helper()
	var public []listedPackage
	for _, p := range listPackages(t) {
		internal := slices.Contains(strings.Split(p.relative(), "/"), "internal")
		if p.inModule() && p.Name != "main" && !internal {
			public = append(public, p)
		}
	}
	return public
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for _, p := range publicPackages(t) {
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		pkg, err := doc.NewFromFiles(fset, files, p.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		c := docCheck{t: t, fset: fset}
		c.packageNames(pkg)
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range publicPackages(t) {
		if !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go", p.relative())
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, "doc.go"), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(file.Doc.Text(), "\n"); n < 5 {
			t.Errorf("%s/doc.go: the package comment has %d lines, want what it is, when to use it and when not, "+
				"cost and concurrency: at least 5", p.relative(), n)
		}
	}
}

// docCheck reports exported names without a comment.
type docCheck struct {
	t    *testing.T
	fset *token.FileSet
}

// missing reports name, declared at n.
func (c docCheck) missing(n ast.Node, name string) {
	pos := c.fset.Position(n.Pos())
	c.t.Errorf("%s:%d: %s has no comment", filepath.Base(filepath.Dir(pos.Filename))+"/"+filepath.Base(pos.Filename),
		pos.Line, name)
}

func (c docCheck) packageNames(p *doc.Package) {
	c.values(p.Consts)
	c.values(p.Vars)
	c.funcs(p.Funcs)
	for _, typ := range p.Types {
		if typ.Doc == "" {
			c.missing(typ.Decl, typ.Name)
		}
		c.values(typ.Consts)
		c.values(typ.Vars)
		c.funcs(typ.Funcs)
		c.funcs(typ.Methods)
		for _, spec := range typ.Decl.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.Name == typ.Name {
				c.members(typ.Name, spec.Type)
			}
		}
	}
}

// values accepts the comment of a group for all of its names.
func (c docCheck) values(groups []*doc.Value) {
	for _, group := range groups {
		if group.Doc != "" {
			continue
		}
		for _, spec := range group.Decl.Specs {
			spec, ok := spec.(*ast.ValueSpec)
			if !ok || commented(spec.Doc, spec.Comment) {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					c.missing(spec, name.Name)
				}
			}
		}
	}
}

func (c docCheck) funcs(list []*doc.Func) {
	for _, f := range list {
		// What is promoted from an embedded type is documented there.
		if f.Doc != "" || f.Level > 0 {
			continue
		}
		name := f.Name
		if f.Recv != "" {
			name = fmt.Sprintf("(%s).%s", f.Recv, f.Name)
		}
		c.missing(f.Decl, name)
	}
}

// members checks the fields of a struct and the methods of an interface, at any depth of types
// written in place. An embedded field is documented by its type.
func (c docCheck) members(owner string, typ ast.Expr) {
	ast.Inspect(typ, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			_, isFunc := n.(*ast.FuncType) // parameters are no members
			return !isFunc
		}
		for _, name := range field.Names {
			if name.IsExported() && !commented(field.Doc, field.Comment) {
				c.missing(field, owner+"."+name.Name)
			}
		}
		return true
	})
}

func commented(groups ...*ast.CommentGroup) bool {
	return slices.ContainsFunc(groups, func(g *ast.CommentGroup) bool { return g.Text() != "" })
}
