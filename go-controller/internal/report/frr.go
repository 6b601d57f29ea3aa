// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/bgp/frrk8s"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/kube/status"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/internal/world"
	"github.com/ovnkube-slb/ovnkube-slb/go-controller/pkg/api/v1alpha1"
)

// withdrawn adds the routes that FRR has not withdrawn to the verdict on a peer, whose backend may be another one now.
func (v *Builder) withdrawn(p *world.Peer, verdict status.Verdict) status.Verdict {
	if why := v.FRR.NotWithdrawn(p.Name); why != "" {
		if verdict.Status == metav1.ConditionTrue {
			verdict.Status, verdict.Reason = metav1.ConditionFalse, v1alpha1.ReasonNotWithdrawn
		}
		verdict.Message = sentences(verdict.Message, why)
	}
	return verdict
}

// frrWritten returns what keeps objects of a peer with backend FRRK8s from being written, otherwise the state of its
// sessions.
func (v *Builder) frrWritten(p *world.Peer, otherwise status.Verdict) status.Verdict {
	if v.BGP.Off() != "" || otherwise.Reason == v1alpha1.ReasonInvalid {
		return otherwise
	}
	not := func(reason, message string) status.Verdict {
		return status.Verdict{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	if why, known := v.World.FRR.WithoutFRR(); why != "" {
		verdict := not(v1alpha1.ReasonNoFRRK8s, why)
		if !known {
			verdict.Status = metav1.ConditionUnknown
		}
		return verdict
	}
	if why := v.FRR.LeftOut(p.Name); why != "" {
		return not(v1alpha1.ReasonFRRConflict, why)
	}
	if why := v.World.FRR.Refused[p.Name]; why != "" {
		return not(v1alpha1.ReasonFRRRefused, why)
	}
	if plan := v.FRR.Of(p.Name); len(plan.Dropped) > 0 {
		return not(v1alpha1.ReasonTooManyRoutes, fmt.Sprintf("%d of %d prefixes are not given to FRR: at most %d "+
			"are, and %d prefixes x nodes of externalTrafficPolicy Local, with equal shares of namespaces; advertise pools as "+
			"aggregates (aggregationLength)", len(plan.Dropped), plan.Prefixes, frrk8s.MaxRoutes, frrk8s.MaxLocalRoutes))
	}
	return otherwise
}
