package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/evenkeel/evenkeel"
	"github.com/evenkeel/evenkeel/subset"
)

func TestParseReadsSubsets(t *testing.T) {
	for text, want := range map[string]*subset.Config{
		`{"subset": null}`: nil,
		`{"subset": {}}`:   {},
		`{"subset": {"algorithm": "auto", "size": 0, "client_index_host": false, "client_index": null}}`: {},
		`{"subset": {"client_index": 0}}`: {ClientIndex: subset.IndexOf(0)},
		`{"subset": {"size": 30.0, "client_index": 3, "client_count": 8, "seed": 9, "min_available": 4, "lot_size": 32}}`: {
			Size: 30, ClientIndex: subset.IndexOf(3), ClientCount: 8, Seed: 9, MinAvailable: 4, LotSize: 32},
		`{"subset": {"algorithm": "rocksteadier", "client_index_env": "POD_INDEX"}}`: {
			Algorithm: subset.UseRocksteadier, ClientIndex: subset.IndexFromEnv("POD_INDEX")},
		`{"subset": {"client_index_host": true, "max_size": 90, "load_per_endpoint": 2.5}}`: {
			ClientIndex: subset.IndexFromHost(), MaxSize: 90, LoadPerEndpoint: 2.5},
	} {
		c, report, err := Parse([]byte(text))
		if err != nil || len(report.Unknown) != 0 || !reflect.DeepEqual(c, evenkeel.Config{Subset: want}) {
			t.Errorf("Parse(%s) = %+v, %v, %v, want subset %+v", text, c.Subset, report, err, want)
			continue
		}
		roundTrip(t, c)
	}
}

func TestParseRefusesWrongSubsets(t *testing.T) {
	for text, want := range map[string]string{
		`{"subset": 20}`:                                                        `config: subset is 20, want an object`,
		`{"subset": true}`:                                                      `config: subset is true, want an object`,
		`{"subset": {"size": "20"}}`:                                            `config: subset.size is "20", want a whole number`,
		`{"subset": {"size": -1}}`:                                              `subset: Config.Size is -1`,
		`{"subset": {"algorithm": "deel"}}`:                                     `config: subset.algorithm is "deel", want one of auto, rendezvous, deal, rocksteadier, aperture, deterministic (nearest: deal)`,
		`{"subset": {"algorithm": "deal"}}`:                                     `subset: Config.ClientIndex is not set, want an index for deal`,
		`{"subset": {"client_index": "3"}}`:                                     `config: subset.client_index is "3", want a whole number`,
		`{"subset": {"client_index": -1}}`:                                      `subset: Config.ClientIndex is -1, want 0 to`,
		`{"subset": {"client_index_env": 1}}`:                                   `config: subset.client_index_env is 1, want a string`,
		`{"subset": {"client_index_env": ""}}`:                                  `subset: Config.ClientIndex.Variable is empty`,
		`{"subset": {"client_index_host": 1}}`:                                  `config: subset.client_index_host is 1, want true or false`,
		`{"subset": {"client_index": 1, "client_index_host": true}}`:            `config: subset.client_index_host is true, want none beside another index of the client`,
		`{"subset": {"client_index": 0, "client_index_env": "I"}}`:              `config: subset.client_index_env is "I", want none beside another index of the client`,
		`{"subset": {"max_size": 50}}`:                                          `subset: Config.LoadPerEndpoint is 0`,
		`{"strict": true, "subset": {"clients": 3}}`:                            `config: subset.clients is not a known field`,
		`{"policy": "fastest", "subset": {"size": []}, "keys": [{"path": 12}]}`: `config: subset.size is [], want a whole number`,
	} {
		c, _, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(c, evenkeel.Config{}) {
			t.Errorf("Parse(%s) = %+v, %v, want an error with %q", text, c, err, want)
		}
	}
}

// A parent may run where the variable is not set, and hands the text on all the same.
func TestParseLooksNoIndexUp(t *testing.T) {
	c, _, err := Parse([]byte(`{"subset": {"client_index_env": "EVENKEEL_TEST_NOT_SET"}}`))
	if err != nil || c.Subset == nil {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := evenkeel.NewPool[int](c, evenkeel.Options{}); err == nil || !strings.Contains(err.Error(), "EVENKEEL_TEST_NOT_SET") {
		t.Errorf("NewPool: %v, want an error that names the variable", err)
	}
}
