// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
)

// baseObjects is a dual-stack pool and the L2 domain that advertises it.
const baseObjects = `
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: IPAddressPool
metadata: {name: lan}
spec: {addresses: ["10.50.0.100-10.50.0.149", "fd00:50::100-fd00:50::1ff"]}
---
apiVersion: slb.k8s.ovn.org/v1alpha1
kind: L2Domain
metadata: {name: lan}
spec:
  physicalNetwork: physnet
  ipAddressPools: [lan]
  subnets: [{cidr: 10.50.0.0/24, gateway: 10.50.0.1}, {cidr: "fd00:50::/64", gateway: "fd00:50::1"}]
`

// The tests of this package run in parallel, each on its own cluster: they wait more than they compute.

func TestController(t *testing.T) {
	t.Parallel()
	onCluster(t, map[string]func(*testing.T, *cluster){
		"NorthboundRestarts":   northboundRestarts,
		"MetricsAreDocumented": metricsAreDocumented,
		"MetricsNeedARight":    metricsNeedARight,
		"RowsAreRepaired":      rowsAreRepaired,
		"NodeReportsOnBGP":     nodeReportsOnBGP,
		"PluginExplains":       pluginExplains,
		"PluginPlans":          pluginPlans,
		"PluginMoves":          pluginMoves,
		"MetalLBIsImported":    metalLBIsImportedWithItsAddresses,
		"ConversionsOfMetalLB": conversionsAreAdmitted,
	})
}

// TestBursts covers bursts of Services, with concurrent writers and processes that fail.
func TestBursts(t *testing.T) {
	t.Parallel()
	onCluster(t, map[string]func(*testing.T, *cluster){
		"KilledAsItWrites":         killedAsItWrites,
		"LeadersComeAndGoInABurst": leadersComeAndGoInABurst,
		"APIServerDiesInABurst":    apiServerDiesInABurst,
		"OthersWriteInABurst":      othersWriteInABurst,
	})
}

// TestTakeovers covers leaders that lose their lease, and databases that fail.
func TestTakeovers(t *testing.T) {
	t.Parallel()
	onCluster(t, map[string]func(*testing.T, *cluster){
		"CommandsTakeTurns":          commandsTakeTurns,
		"StandbyTakesOver":           standbyTakesOver,
		"LeaderSleepsThroughItsTerm": leaderSleepsThroughItsTerm,
		"APIServerIsAwayForLong":     apiServerIsAwayForLongerThanALease,
	})
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	onCluster(t, map[string]func(*testing.T, *cluster){
		"ClusteredDatabasesFail":     clusteredDatabasesFail,
		"LeaderIsCutOffFromDatabase": leaderIsCutOffFromDatabase,
		"StuckLeaderIsRestarted":     stuckLeaderIsRestarted,
	})
}

// onCluster runs tests one after the other on one cluster, in random order.
func onCluster(t *testing.T, tests map[string]func(*testing.T, *cluster)) {
	t.Helper()
	c := newCluster(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { c.clear(t) })
			test(t, c)
		})
	}
}
