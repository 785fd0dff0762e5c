package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel/internal/config"
	"github.com/evenkeel/evenkeel/internal/sim"
	"github.com/evenkeel/evenkeel/picker"
)

// maxPolicies is how many lines of a chart can be told apart.
const maxPolicies = 6

// policies reads what to compare on a fleet of n endpoints.
func (r *reader) policies(name string, n int) []sim.Policy {
	items := splitPolicies(r.text(name))
	if len(items) < 1 || len(items) > maxPolicies {
		r.refuse(name, "1 to %d policies", maxPolicies)
		return nil
	}
	var out []sim.Policy
	for _, item := range items {
		p, err := parsePolicy(item, n)
		if err != nil {
			r.refuseValue(name, item, "%v", err)
			continue
		}
		if slices.ContainsFunc(out, func(q sim.Policy) bool { return q.Name == p.Name }) {
			r.refuseValue(name, item, "each policy once")
			continue
		}
		out = append(out, p)
	}
	return out
}

// bound reads what is measured against.
func (r *reader) bound(name string) *sim.Policy {
	text := r.oneOf(name, "jsed", "jsq", "none")
	if text == "none" {
		return nil
	}
	p, err := sim.PolicyNamed(text)
	if err != nil {
		r.refuse(name, "%s", oneLine(err))
		return nil
	}
	return &p
}

// splitPolicies divides a list at commas and blanks, but not inside of JSON.
func splitPolicies(text string) []string {
	var out []string
	var item strings.Builder
	depth, quoted, escaped := 0, false, false
	end := func() {
		if item.Len() > 0 {
			out = append(out, item.String())
		}
		item.Reset()
	}
	for _, c := range text {
		switch {
		case quoted:
			quoted = c != '"' || escaped
			escaped = c == '\\' && !escaped
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case depth <= 0 && strings.ContainsRune(", \t\r\n", c):
			end()
			continue
		}
		item.WriteRune(c)
	}
	end()
	return out
}

// parsePolicy reads a name or JSON. The error says what is allowed.
func parsePolicy(text string, endpoints int) (sim.Policy, error) {
	if !strings.HasPrefix(text, "{") {
		p, err := sim.PolicyNamed(text)
		if err == nil {
			return p, nil
		}
		if strings.Contains(text, "@") {
			return p, fmt.Errorf("a policy: %s", oneLine(err))
		}
		// Names that only the JSON form knows.
		if c, _, err := config.Parse(fmt.Appendf(nil, `{"policy": %q}`, text)); err == nil {
			return sim.Policy{Name: text, Config: c}, nil
		}
		return p, fmt.Errorf("JSON in braces, or one of %s", strings.Join(policyNames(), ", "))
	}
	p, err := jsonPolicy(text)
	if err != nil {
		return p, err
	}
	if c, ok := p.Config.Policy.(picker.P2C); ok && c.Choices > endpoints {
		return p, fmt.Errorf("choices up to %d, the number of -endpoints, not %d", endpoints, c.Choices)
	}
	return p, nil
}

// jsonPolicy reads the JSON of a config, or of the policy alone.
func jsonPolicy(text string) (sim.Policy, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return sim.Policy{}, fmt.Errorf(`JSON such as {"p2c": {"choices": 3}}: %w`, err)
	}
	if _, whole := members["policy"]; !whole {
		members = map[string]json.RawMessage{"policy": json.RawMessage(text)}
	}
	members["strict"] = json.RawMessage("true")
	strict, err := json.Marshal(members)
	if err != nil {
		return sim.Policy{}, fmt.Errorf("JSON: %w", err)
	}
	c, _, err := config.Parse(strict)
	if err != nil {
		return sim.Policy{}, fmt.Errorf("a valid policy: %s", oneLine(err))
	}
	return sim.Policy{Name: jsonLabel(members["policy"]), Config: c}, nil
}

// jsonLabel is the JSON of a policy, shorter: p2c{choices:3}.
func jsonLabel(raw json.RawMessage) string {
	var short bytes.Buffer
	if err := json.Compact(&short, raw); err != nil {
		return string(raw)
	}
	label := strings.NewReplacer(`"`, "", ":{}", "").Replace(short.String())
	if inner, found := strings.CutPrefix(label, "{"); found {
		label = strings.TrimSuffix(inner, "}")
	}
	return strings.Replace(label, ":{", "{", 1)
}

// policyNames are the names of all policies, those of the simulator first.
func policyNames() []string {
	names := sim.PolicyNames()
	for i, n := range names {
		if strings.HasSuffix(n, "@") {
			names[i] += "100ms (any age)"
		}
	}
	return append(names, "adaptive", "weighted_round_robin", "weighted_random", "smooth_weighted_round_robin", "edf",
		"weighted_least_request")
}

// unclear are policies of which the names do not say all that matters.
var unclear = map[string]string{
	"envoy":          "p2c with Envoy's outlier detection as it comes: at most 10 % ejected, a panic below 50 %, no limit",
	"envoy_30":       "the same with at most 30 % ejected",
	"envoy_uncapped": "Envoy's outlier detection without a cap and without panic",
	"guarded_p2c":    "p2c with this library's ejection and its limit of requests in flight",
}
