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
	number := func(n uint32) *uint32 { return &n }
	profile := frrapi.BFDProfile{Name: shortened(p.BFDName, maxProfileName), PassiveMode: &p.BFD.Passive,
		ReceiveInterval:  number(uint32(p.BFD.Receive / time.Millisecond)),
		TransmitInterval: number(uint32(p.BFD.Transmit / time.Millisecond)),
		DetectMultiplier: number(uint32(p.BFD.Multiplier)), MinimumTTL: number(uint32(p.BFD.MinimumTTL))}
	// A session that was shared keeps the name of its profile. FRR would delete one that is renamed first, and its BFD
	// sessions have the default timers meanwhile.
	if merged.otherProfile(profile) {
		profile.Name = shortened("slb-"+p.BFDName, maxProfileName)
	}
	s.BFDProfile = profile.Name
	return s, []frrapi.BFDProfile{profile}
}

// maxProfileName is the maximum length of the name of a BFD profile in FRR (BFD_NAME_SIZE, 255 with its end) and in a
// name of ours that stays readable.
const maxProfileName = 60
