// SPDX-License-Identifier: Apache-2.0

package frrk8s

import (
	"time"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/frrapi"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
)

// sessionOf returns the session of a peer that no other object defines, and its BFD profile. merged are the objects of
// others on the node.
func sessionOf(p *world.Peer, merged *Merged) (frrapi.Session, []frrapi.BFDProfile) {
	s := frrapi.Session{ASN: p.PeerASN, LocalASN: p.LocalASN, Interface: p.Interface, Password: p.Password,
		Secret: frrapi.SecretRef{Name: p.PasswordSecret}, EBGPMultiHop: p.TTL > 0, GracefulRestart: p.GracefulRestart,
		DualStack: p.DualStack}
	if p.PeerASN == 0 {
		s.DynamicASN = "external"
		if p.Internal {
			s.DynamicASN = "internal"
		}
	}
	if p.Addr.IsValid() {
		s.Address = p.Addr.String()
	}
	if p.Source.IsValid() {
		s.SourceAddress = p.Source.String()
	}
	if p.Port != defaultPort {
		s.Port = &p.Port
	}
	keepalive := p.Keepalive
	if p.Hold != defaultHold*time.Second && keepalive == defaultKeepalive*time.Second {
		// frr-k8s would drop this timer because FRR's default is the same, and then ignore the other one.
		keepalive -= time.Second
	}
	s.HoldTime, s.KeepaliveTime = &frrapi.Duration{Duration: p.Hold}, &frrapi.Duration{Duration: keepalive}
	s.ConnectTime = &frrapi.Duration{Duration: p.Connect}
	if p.BFD == nil {
		return s, nil
	}
	profile := profileOf(p)
	if theirs, ok := merged.profile(profile.Name); ok {
		if effect, same := inEffect(profile), inEffect(theirs.BFDProfile); frrapi.Equal(&effect, &same) {
			profile = theirs.BFDProfile // frr-k8s compares what is written
		} else {
			profile.Name = shortened("slb-"+p.BFDName, maxProfileName)
		}
	}
	s.BFDProfile = profile.Name
	return s, []frrapi.BFDProfile{profile}
}

// profileOf returns the BFD profile of a peer. As in objects of others, FRR's defaults are left out. It has the name of
// the peer's, so that a session that was shared keeps it: FRR would delete a profile that is renamed first, and its BFD
// sessions have the default timers meanwhile.
func profileOf(p *world.Peer) frrapi.BFDProfile {
	number := func(n uint32) *uint32 { return &n }
	all := frrapi.BFDProfile{Name: shortened(p.BFDName, maxProfileName), PassiveMode: &p.BFD.Passive,
		ReceiveInterval:  number(uint32(p.BFD.Receive / time.Millisecond)),
		TransmitInterval: number(uint32(p.BFD.Transmit / time.Millisecond)),
		DetectMultiplier: number(uint32(p.BFD.Multiplier)), MinimumTTL: number(uint32(p.BFD.MinimumTTL))}
	return inEffect(all)
}

// inEffect returns a BFD profile without values that change nothing: FRR's defaults, and how often it sends echo
// packets if it sends none.
func inEffect(p frrapi.BFDProfile) frrapi.BFDProfile {
	p = p.Completed()
	for _, f := range []struct {
		value    **uint32
		standard uint32
	}{{&p.ReceiveInterval, defaultBFDInterval}, {&p.TransmitInterval, defaultBFDInterval},
		{&p.DetectMultiplier, defaultBFDMultiplier}, {&p.MinimumTTL, defaultMinimumTTL}} {
		if *f.value != nil && **f.value == f.standard {
			*f.value = nil
		}
	}
	if !*p.EchoMode {
		p.EchoInterval = nil
	}
	return p
}

// FRR's defaults of BFD (intervals in milliseconds): BFD_DEFREQUIREDMINRX, BFD_DEFDETECTMULT and BFD_DEF_MHOP_TTL of
// its bfdd/bfd.h.
const (
	defaultBFDInterval   = 300
	defaultBFDMultiplier = 3
	defaultMinimumTTL    = 254
)

// maxProfileName is the maximum length of the name of a BFD profile in FRR (BFD_NAME_SIZE, 255 with its end) and in a
// name of ours that stays readable.
const maxProfileName = 60
