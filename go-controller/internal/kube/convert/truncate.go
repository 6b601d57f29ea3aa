// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/printable"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// maxForeignText is the maximum length, in bytes, of a text of a node or a tenant. A node that is taken over writes its
// reports and annotations, and a tenant those of Services. The text becomes part of messages about many objects, and of
// statuses that all nodes watch.
const maxForeignText = 256

// Truncate returns a text of at most most bytes, 3 or more: a longer one ends with "...". It stays valid UTF-8, so
// that the API server stores it as it is.
func Truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len("...")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

func boundValues[K comparable](texts map[K]string) {
	for key, text := range texts {
		texts[key] = Bounded(text)
	}
}

// maxNetworks is how many physical networks of a report count. A node has a bridge for each.
const maxNetworks = 256

// boundNetworks removes all but the first networks of a report, in the order of their names: decisions read them for
// each L2Domain and each Service, and a node that is taken over can report as many as fit into a Lease. EveryNetwork
// stays.
func boundNetworks[V any](byNetwork map[string]V) {
	if len(byNetwork) <= maxNetworks {
		return
	}
	for _, network := range slices.Sorted(maps.Keys(byNetwork))[maxNetworks:] {
		if network != world.EveryNetwork {
			delete(byNetwork, network)
		}
	}
}

// Bounded returns a text of others for messages: of a node, of another project, or of the API server about its objects.
// It is one line, so that it can't pass for more than one message.
func Bounded(text string) string { return Truncate(printable.Line(text), maxForeignText) }
