// SPDX-License-Identifier: Apache-2.0

package status

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/convert"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// Service is the desired status of a Service.
type Service struct {
	// UID is the UID of the object that the status is meant for. Another object of the same name is not written.
	UID string
	// PreviousAddrs and PreviousHosts are the addresses and host names that the status contained when this was decided.
	// If another client has written others since, nothing is written until there is a new decision.
	PreviousAddrs []netip.Addr
	PreviousHosts []string
	// Addrs are the addresses, in the order of the Service's families.
	Addrs []netip.Addr
	// ListPorts reports whether the first entry of status.loadBalancer.ingress lists the Service's ports.
	ListPorts bool
	// LeaveIngress reports whether status.loadBalancer belongs to another controller and must not be changed.
	LeaveIngress bool
	Allocated    Verdict
	// ListsExternal reports whether the Service has spec.externalIPs. External are those of them that belong to the
	// Service.
	ListsExternal bool
	External      []netip.Addr
	// Announced is nil while the dataplane has not reported yet: the condition for the same addresses is not changed.
	Announced *Verdict
	// Release removes our conditions and addresses from a Service that is no longer ours.
	Release bool
}

// Equal reports whether two statuses are written alike.
func (s *Service) Equal(o *Service) bool {
	return s == o || s.UID == o.UID && s.Release == o.Release && s.LeaveIngress == o.LeaveIngress &&
		s.ListPorts == o.ListPorts && s.Allocated == o.Allocated &&
		slices.Equal(s.PreviousAddrs, o.PreviousAddrs) && slices.Equal(s.PreviousHosts, o.PreviousHosts) &&
		slices.Equal(s.Addrs, o.Addrs) && slices.Equal(s.External, o.External) &&
		s.ListsExternal == o.ListsExternal && sameVerdict(s.Announced, o.Announced)
}

// Expects reports whether the addresses and host names in the status of an object were known when this was decided.
func (s *Service) Expects(have *corev1.Service) bool {
	if s.Release {
		return true
	}
	if hosts := convert.AssignedHosts(have); len(hosts) > 0 && !slices.Equal(hosts, s.PreviousHosts) {
		return false
	}
	assigned := convert.Assigned(have)
	return len(assigned) == 0 || slices.Equal(assigned, s.PreviousAddrs) || slices.Equal(assigned, s.Addrs)
}

// Merged returns the object with the desired status, and false if it has that status already.
func (s *Service) Merged(have *corev1.Service, now time.Time) (*corev1.Service, bool) {
	if s.Release {
		return released(have)
	}
	ingress := s.ingress(have)
	kept := slices.Equal(s.Addrs, convert.Assigned(have))
	announced := s.Announced
	if announced == nil && (!kept || meta.FindStatusCondition(have.Status.Conditions,
		v1alpha1.ConditionAnnounced) == nil) {
		announced = &Verdict{metav1.ConditionUnknown, v1alpha1.ReasonProgramming, "the dataplane has not been programmed yet"}
	}

	conditions := slices.Clone(have.Status.Conditions)
	changed := ingress != nil
	changed = s.Allocated.Set(&conditions, v1alpha1.ConditionAllocated, now) || changed
	if s.ListsExternal {
		changed = meta.SetStatusCondition(&conditions, s.externalIPs(now)) || changed
	} else {
		changed = meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionExternalIPs) || changed
	}
	if announced != nil {
		changed = announced.Set(&conditions, v1alpha1.ConditionAnnounced, now) || changed
	}
	if !changed {
		return nil, false
	}
	out := have.DeepCopy()
	out.Status.Conditions = conditions
	if ingress != nil {
		out.Status.LoadBalancer.Ingress = ingress
	}
	return out, true
}

// ChangesIngress reports whether the entries in the status of an object differ from the desired ones.
func (s *Service) ChangesIngress(have *corev1.Service) bool { return s.ingress(have) != nil }

// ingress returns the entries to write, nil if the present ones are right. An API server before Kubernetes 1.30 drops
// ipMode; later ones add it where it is absent.
func (s *Service) ingress(have *corev1.Service) []corev1.LoadBalancerIngress {
	if s.LeaveIngress {
		return nil
	}
	out := make([]corev1.LoadBalancerIngress, 0, len(s.Addrs))
	for i, a := range s.Addrs {
		mode := corev1.LoadBalancerIPModeVIP
		entry := corev1.LoadBalancerIngress{IP: a.String(), IPMode: &mode}
		if s.ListPorts && i == 0 {
			for _, p := range have.Spec.Ports {
				entry.Ports = append(entry.Ports, corev1.PortStatus{Port: p.Port, Protocol: p.Protocol})
			}
		}
		out = append(out, entry)
	}
	if slices.EqualFunc(have.Status.LoadBalancer.Ingress, out, sameEntry) {
		return nil
	}
	return out
}

func sameEntry(a, b corev1.LoadBalancerIngress) bool {
	return a.IP == b.IP && a.Hostname == b.Hostname && (a.IPMode == nil || *a.IPMode == *b.IPMode) &&
		slices.EqualFunc(a.Ports, b.Ports, func(p, q corev1.PortStatus) bool {
			return p.Port == q.Port && p.Protocol == q.Protocol && p.Error == nil && q.Error == nil
		})
}

// externalIPs returns the condition from which a restarted controller reads which Service these addresses belong to.
// Its message is not truncated: package convert limits the length of all addresses of spec.externalIPs.
func (s *Service) externalIPs(now time.Time) metav1.Condition {
	if len(s.External) == 0 {
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonNoneHeld,
			"no address of spec.externalIPs belongs to the Service; see " +
				v1alpha1.ConditionAllocated}.
			condition(v1alpha1.ConditionExternalIPs, 0, now)
	}
	c := Verdict{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHeld}.condition(v1alpha1.ConditionExternalIPs, 0,
		now)
	c.Message = convert.ListExternalIPs(s.External)
	return c
}

// released removes our conditions and the addresses that we allocated. Addresses of another controller, added or
// replaced, are kept.
func released(have *corev1.Service) (*corev1.Service, bool) {
	out := have.DeepCopy()
	changed := false
	for _, kind := range []string{v1alpha1.ConditionAllocated, v1alpha1.ConditionExternalIPs,
		v1alpha1.ConditionAnnounced} {
		changed = meta.RemoveStatusCondition(&out.Status.Conditions, kind) || changed
	}
	if !changed {
		return nil, false
	}
	given := convert.Given(have)
	out.Status.LoadBalancer.Ingress = slices.DeleteFunc(out.Status.LoadBalancer.Ingress,
		func(i corev1.LoadBalancerIngress) bool {
			a, err := netip.ParseAddr(i.IP)
			return err == nil && slices.Contains(given, a.Unmap())
		})
	return out, true
}
