// SPDX-License-Identifier: Apache-2.0

package sdn

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// The limits of an annotation. The API server accepts 256 KiB of annotations per object, which other components
// share.
const (
	// MaxVIPs is the maximum number of addresses per node. Fewer fit if the names of Services and L2Domains are long.
	MaxVIPs = 1000
	// maxText is the maximum length of an annotation that is written or parsed, in bytes.
	maxText = 240 << 10
	// maxQuoted is how much of an invalid value an error quotes, in bytes.
	maxQuoted = 64
	// maxInterface is the maximum length of an interface name (IFNAMSIZ without the terminating NUL, netdevice(7)).
	maxInterface = 15
	// maxName is the maximum length of each part of a Service's name and of a domain's name (RFC 1123, as applied by
	// Kubernetes).
	maxName = 253
	// maxShard limits the index of a shard. The actual number of shards is lower (GatewaySet.Shards).
	maxShard = 1 << 16
)

// vip is an entry of the annotation.
type vip struct {
	IP         string `json:"ip"`
	Service    string `json:"service"`
	Generation uint64 `json:"generation"`
	Shard      string `json:"shard"`
	Interface  string `json:"interface"`
}

// Parse parses the annotation v1alpha1.AnnotationVIPs. An empty annotation has no addresses. The error names the
// field and its value. The result is sorted by address.
func Parse(text string) ([]world.Held, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("%d bytes are more than %d", len(text), maxText)
	}
	var entries []vip
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, fmt.Errorf("%s is no list of addresses: %w", quoted(text), err)
	}
	if len(entries) > MaxVIPs {
		return nil, fmt.Errorf("%d addresses are more than %d", len(entries), MaxVIPs)
	}
	table := make(map[netip.Addr]world.Held, len(entries))
	for i, e := range entries {
		h, err := e.held()
		if err != nil {
			return nil, fmt.Errorf("[%d].%w", i, err)
		}
		if _, twice := table[h.Addr]; twice {
			return nil, fmt.Errorf("[%d].ip: %s is listed twice", i, quoted(e.IP))
		}
		table[h.Addr] = h
	}
	return sorted(table), nil
}

// Format returns the text that Parse accepts, or an empty string for no addresses.
func Format(held []world.Held) string {
	if len(held) == 0 {
		return ""
	}
	entries := make([]vip, len(held))
	for i, h := range held {
		entries[i] = entry(h)
	}
	text, err := json.Marshal(entries)
	if err != nil { // impossible: strings and numbers can always be marshaled
		return ""
	}
	return string(text)
}

func entry(h world.Held) vip {
	return vip{h.Addr.String(), h.Service.String(), h.Generation, h.Shard.Domain + "/" + strconv.Itoa(h.Shard.Index),
		h.Interface}
}

// sizeOf returns how much longer an annotation with an address is.
func sizeOf(h world.Held) int { return len(Format([]world.Held{h})) - len("[]") + len(",") }

func (v *vip) held() (world.Held, error) {
	h := world.Held{Generation: v.Generation, Interface: v.Interface}
	var err error
	if h.Addr, err = netip.ParseAddr(v.IP); err != nil || h.Addr.Zone() != "" || h.Addr.Is4In6() ||
		!h.Addr.IsGlobalUnicast() {
		return h, fmt.Errorf("ip: %s is no address that a Service can have", quoted(v.IP))
	}
	if h.Service.Namespace, h.Service.Name, err = pair(v.Service); err != nil {
		return h, fmt.Errorf("service: %s is not NAMESPACE/NAME", quoted(v.Service))
	}
	var index string
	if h.Shard.Domain, index, err = pair(v.Shard); err == nil {
		h.Shard.Index, err = strconv.Atoi(index)
	}
	if err != nil || h.Shard.Index < 0 || h.Shard.Index > maxShard || index != strconv.Itoa(h.Shard.Index) {
		return h, fmt.Errorf("shard: %s is not L2DOMAIN/INDEX", quoted(v.Shard))
	}
	if !IsInterface(v.Interface) {
		return h, fmt.Errorf("interface: %s is no name of an interface", quoted(v.Interface))
	}
	return h, nil
}

// IsInterface reports whether a name is one that an interface can have.
func IsInterface(name string) bool {
	return name != "" && len(name) <= maxInterface && !strings.ContainsAny(name, "/ \t\n:")
}

// pair splits A/B.
func pair(text string) (a, b string, err error) {
	a, b, _ = strings.Cut(text, "/")
	if a == "" || b == "" || len(a) > maxName || len(b) > maxName || strings.Contains(b, "/") {
		return "", "", errors.New("no pair")
	}
	return a, b, nil
}

func quoted(text string) string {
	if len(text) > maxQuoted {
		return strconv.Quote(text[:maxQuoted]) + "..."
	}
	return strconv.Quote(text)
}
