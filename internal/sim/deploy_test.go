package sim

import "testing"

// deployGoals: while three of ten servers fail everything and the others cannot carry the load, 95 % of
// what these can; soon after the end all is well, for few clients and for many.
var deployGoals = []goal{
	{row: "a bad deploy", at: "bad_deploy/3/load=0.8/B=1", figure: "success failing", least: 0.95 * 87.5, most: 100, seeds: 5},
	{row: "a bad deploy", at: "bad_deploy/3/load=0.8/B=20", figure: "success failing", least: 0.95 * 87.5, most: 100, seeds: 5},
	{row: "a bad deploy", at: "bad_deploy/3/load=0.8/B=100", figure: "success failing", least: 0.95 * 87.5, most: 100, seeds: 5},
	{row: "and its end", at: "bad_deploy/3/load=0.8/B=1", figure: "success 5 s after", least: 99, most: 100, seeds: 5},
	{row: "and its end", at: "bad_deploy/3/load=0.8/B=20", figure: "success 5 s after", least: 99, most: 100, seeds: 5},
	{row: "and its end", at: "bad_deploy/3/load=0.8/B=100", figure: "success 15 s after", least: 99, most: 100, seeds: 5},
	{row: "nothing is for good", at: "bad_deploy/3/load=0.8/B=100", figure: "success later", least: 99.9, most: 100, seeds: 5},
	{row: "two of ten at 90 %", at: "bad_deploy/2/load=0.9/B=1", figure: "success failing", least: 0.95 * 88.8, most: 100, seeds: 5},
	{row: "two of ten at 90 %", at: "bad_deploy/2/load=0.9/B=20", figure: "success failing", least: 0.95 * 88.8, most: 100, seeds: 5},
	{row: "two of ten at 90 %", at: "bad_deploy/2/load=0.9/B=100", figure: "success failing", least: 0.95 * 88.8, most: 100, seeds: 5},
	{row: "and its end", at: "bad_deploy/2/load=0.9/B=100", figure: "success 15 s after", least: 99, most: 100, seeds: 5},
	{row: "six of ten", at: "bad_deploy/6/load=0.8/B=1", figure: "success failing", least: 0.95 * 50, most: 100, seeds: 5},
	{row: "six of ten", at: "bad_deploy/6/load=0.8/B=20", figure: "success failing", least: 0.95 * 50, most: 100, seeds: 5},
	{row: "there is room for all", at: "bad_deploy/3/load=0.6/B=1", figure: "success failing", least: 99.5, most: 100, seeds: 5},
	{row: "there is room for all", at: "bad_deploy/3/load=0.6/B=20", figure: "success failing", least: 98.5, most: 100, seeds: 5},

	// Policies that see no failures have ejection for them.
	{row: "two choices by requests in flight", at: "bad_deploy/3/load=0.8/B=1", figure: "success failing", least: 0.95 * 87.5, most: 100, seeds: 5, policy: "guarded_p2c"},
	{row: "two choices by requests in flight", at: "bad_deploy/3/load=0.8/B=20", figure: "success failing", least: 0.95 * 87.5, most: 100, seeds: 5, policy: "guarded_p2c"},
	{row: "and its end", at: "bad_deploy/3/load=0.8/B=20", figure: "success 15 s after", least: 99, most: 100, seeds: 5, policy: "guarded_p2c"},
	{row: "round robin", at: "bad_deploy/3/load=0.8/B=1", figure: "success failing", least: 80, most: 100, seeds: 5, policy: "guarded_round_robin"},
	{row: "and its end", at: "bad_deploy/3/load=0.8/B=1", figure: "success 15 s after", least: 99, most: 100, seeds: 5, policy: "guarded_round_robin"},
	{row: "six of ten, no worse than without", at: "bad_deploy/6/load=0.8/B=1", figure: "success failing", least: 40 - 5, most: 100, seeds: 3, policy: "guarded_round_robin"},
	{row: "six of ten, no worse than without", at: "bad_deploy/6/load=0.8/B=20", figure: "success failing", least: 40 - 5, most: 100, seeds: 3, policy: "guarded_round_robin"},
	{row: "six of ten, no worse than without", at: "bad_deploy/6/load=0.8/B=100", figure: "success failing", least: 40 - 5, most: 100, seeds: 3, policy: "guarded_round_robin"},
	{row: "and their end", at: "bad_deploy/6/load=0.8/B=100", figure: "success 5 s after", least: 99, most: 100, seeds: 3, policy: "guarded_round_robin"},
	{row: "one of ten", at: "S3", figure: "errors while failing", least: 0, most: 0.1, seeds: 3, policy: "guarded_round_robin"},
}

func TestBadDeployStaysAPartOfAnOutage(t *testing.T) {
	statistical(t)
	list := deployGoals
	if testing.Short() {
		list = list[:3]
	}
	judge(t, list, 0, 1)
}
