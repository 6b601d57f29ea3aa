// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/test/scenario/apiserver"
)

// command is a command of scripts. Objects are named KIND/NAME or KIND/NAMESPACE/NAME.
type command struct {
	name, args, what string
	run              func(c *cluster, args []string) ([]string, error)
}

func commands() []command {
	return slices.Concat(clusterCommands(), frrCommands(), providerCommands(), objectCommands(), shortCommands(),
		faultCommands(),
		showCommands(), explainCommands())
}

func clusterCommands() []command {
	return []command{
		{"nodes", "N [zones]", "create nodes n1 to N; with zones, each has its own databases",
			func(c *cluster, args []string) ([]string, error) {
				n, err := strconv.Atoi(args[0])
				if err != nil {
					return nil, err
				}
				c.interconnect = len(args) > 1 && args[1] == "zones"
				return nil, c.addNodes(1, n)
			}},
		{"start", "controller [NAME] [OPTION...] | node NODE [OPTION...]",
			"start a process; process_test.go has the options",
			func(c *cluster, args []string) ([]string, error) { return nil, c.start(args) }},
		{"stop", "PROCESS", "stop a process", func(c *cluster, args []string) ([]string, error) {
			return nil, c.end(strings.Join(args, " "), (*process).stop)
		}},
		{"kill", "PROCESS", "end a process before it can write anything else",
			func(c *cluster, args []string) ([]string, error) {
				return nil, c.end(strings.Join(args, " "), (*process).kill)
			}},
		{"expire", "PROCESS", "end the term of a leader, whose process goes on",
			func(c *cluster, args []string) ([]string, error) {
				p, err := c.process(strings.Join(args, " "))
				if err == nil && p.term != nil {
					p.term.Expire()
				}
				return nil, err
			}},
		{"wait", "DURATION", "let time pass", func(_ *cluster, args []string) ([]string, error) {
			d, err := time.ParseDuration(args[0])
			if err != nil {
				return nil, err
			}
			<-time.After(d)
			return nil, nil
		}},
		{"openshift", "install | remove", "add or remove OpenShift's kinds",
			func(c *cluster, args []string) ([]string, error) {
				if args[0] == "install" {
					c.server.AddKinds(apiserver.OpenShiftKinds())
				} else {
					c.server.RemoveKinds(apiserver.OpenShiftKinds())
				}
				return nil, nil
			}},
		{"crds", "install | remove RESOURCE...", "add or remove kinds of ours", func(c *cluster, args []string) ([]string,
			error) {
			var kinds apiserver.Kinds
			for _, k := range c.kinds {
				if slices.Contains(args[1:], k.Resource) {
					kinds = append(kinds, k)
				}
			}
			if args[0] == "install" {
				c.server.AddKinds(kinds)
			} else {
				c.server.RemoveKinds(kinds)
			}
			return nil, nil
		}},
		{"health", "", "what each process waits for", func(c *cluster, _ []string) ([]string, error) {
			var out []string
			for _, p := range c.processes {
				text := "ok"
				if err := p.health(); err != nil {
					text = strings.ReplaceAll(err.Error(), "\n", "; ")
				}
				out = append(out, p.name+": "+text)
			}
			return out, nil
		}},
	}
}

func faultCommands() []command {
	return []command{
		{"api", "away | back | end-watches | compact | backup | restore | delay RESOURCE DURATION | rival RESOURCE N | " +
			"refuse RESOURCE [TEXT] | full NAMESPACE | forbid RESOURCE | permit RESOURCE",
			"make the API server unreachable or slow, restore etcd, write as " +
				"another client right before the product, let a webhook refuse objects (# is the number of the refusal), " +
				"store no status of the Services of a namespace, or let only users read a resource",
			func(c *cluster, args []string) ([]string, error) { return nil, c.disturb(args) }},
		{"connection", "cut | restore PROCESS", "cut the connection of a process to the API server",
			func(c *cluster, args []string) ([]string, error) {
				p, err := c.process(strings.Join(args[1:], " "))
				switch {
				case err != nil:
				case args[0] == "cut":
					p.client.Cut()
				default:
					p.client.Restore()
				}
				return nil, err
			}},
		{"chassis", "N up | down | removed | bridges MAPPINGS", "change the OVN of node N",
			func(c *cluster, args []string) ([]string, error) {
				name := "chassis-" + args[0]
				switch args[1] {
				case "up", "down":
					return nil, c.fabric.SetAlive(name, args[1] == "up")
				case "bridges":
					return nil, c.fabric.SetBridges(name, strings.Join(args[2:], ","))
				}
				c.fabric.RemoveChassis(name)
				return nil, nil
			}},
		{"northd", "up | down [NODE]", "start or stop ovn-northd", func(c *cluster, args []string) ([]string, error) {
			c.fabric.Zone(strings.Join(args[1:], "")).SetNorthd(args[0] == "up")
			return nil, nil
		}},
		{"databases", "both | nb | sb | none [NODE]", "which databases can be reached",
			func(c *cluster, args []string) ([]string, error) {
				c.fabric.Zone(strings.Join(args[1:], "")).SetReachable(args[0] == "both" || args[0] == "nb",
					args[0] == "both" || args[0] == "sb")
				return nil, nil
			}},
		{"remove-rows", "[NODE] -- WORD...", "delete the rows that contain all words, as another client",
			func(c *cluster, args []string) ([]string, error) {
				node, words := zoneAndWords(args)
				return []string{fmt.Sprint(c.fabric.Zone(node).Remove(words...))}, nil
			}},
		{"occupy", "ADDRESS MAC", "let another host have an address, before processes start",
			func(c *cluster, args []string) ([]string, error) {
				a, err := netip.ParseAddr(args[0])
				c.occupied[a] = args[1]
				return nil, err
			}},
	}
}

// disturb performs the command api.
func (c *cluster) disturb(args []string) error {
	switch args[0] {
	case "away", "back":
		c.server.SetAway(args[0] == "away")
	case "end-watches":
		c.server.EndWatches()
	case "compact":
		c.server.Compact()
	case "backup":
		c.restore = c.server.Backup()
	case "restore":
		c.restore()
	case "full":
		c.server.SetFull(args[1])
	case "delay":
		d, err := time.ParseDuration(args[2])
		c.server.Delay(args[1], d)
		return err
	case "forbid", "permit":
		c.server.Forbid(args[1], args[0] == "forbid")
	case "refuse":
		c.server.Refuse(args[1], strings.Join(args[2:], " "))
	case "rival":
		n, err := strconv.Atoi(args[2])
		c.server.Rival(args[1], n)
		return err
	default:
		return fmt.Errorf("%q is no fault", args[0])
	}
	return nil
}

// zoneAndWords splits "[NODE] -- WORD...".
func zoneAndWords(args []string) (node string, words []string) {
	at := slices.Index(args, "--")
	return strings.Join(args[:max(at, 0)], ""), args[at+1:]
}
