package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/evenkeel/evenkeel/internal/config"
)

var (
	tablePolicies = flag.String("policy", "", "TestTable: policies, by name or as JSON of the config, separated by spaces")
	tableCases    = flag.String("cases", "", "TestTable: cases, separated by commas; nothing means all")
	tableSeeds    = flag.Int("seeds", 5, "TestTable: number of seeds")
	tableFrom     = flag.Int("from", 1, "TestTable: the first seed")
)

// policyOf returns a policy by name, or a config's by its JSON.
func policyOf(t *testing.T, text string) Policy {
	t.Helper()
	if strings.HasPrefix(text, "{") {
		c, _, err := config.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return Policy{Name: text, Config: c}
	}
	p, err := PolicyNamed(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTable prints what policies give in cases, if asked to:
//
//	go test ./internal/sim -run TestTable -v -policy 'default p2c' -cases S1,fleet_a
func TestTable(t *testing.T) {
	if *tablePolicies == "" {
		t.Skip("no -policy")
	}
	cases := Cases()
	if *tableCases != "" {
		var err error
		if cases, err = CasesNamed(strings.Split(*tableCases, ",")...); err != nil {
			t.Fatal(err)
		}
	}
	seeds := Seeds(*tableSeeds)
	for i := range seeds {
		seeds[i] += uint64(*tableFrom) - 1
	}
	var policies []Policy
	for name := range strings.FieldsSeq(*tablePolicies) {
		policies = append(policies, policyOf(t, name))
	}
	for _, c := range cases {
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "%s", c.Name)
		for _, f := range c.Figures {
			fmt.Fprintf(w, "\t%s %s", f.Name, f.Unit)
		}
		fmt.Fprintln(w)
		for _, p := range policies {
			row, err := c.Measure(p, seeds, runtime.GOMAXPROCS(0))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(w, "  %s", p.Name)
			for _, m := range row {
				fmt.Fprintf(w, "\t%.4g ± %.2g", m.Mean, m.SD)
			}
			fmt.Fprintln(w)
		}
		w.Flush()
	}
}
