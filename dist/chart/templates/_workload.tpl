{{- /*
SPDX-License-Identifier: Apache-2.0
A Deployment or DaemonSet with what the values say.
*/ -}}
{{- define "ovnkube-slb.workload" -}}
{{- $values := .root.Values.node }}
{{- if eq .object.kind "Deployment" }}
{{- $values = .root.Values.controller }}
{{- $_ := set .object.spec "replicas" $values.replicas }}
{{- end }}
{{- $pod := .object.spec.template.spec }}
{{- with $values.nodeSelector }}
{{- $_ := set $pod "nodeSelector" (merge (dict) . ($pod.nodeSelector | default dict)) }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
{{- $_ := set $pod "imagePullSecrets" . }}
{{- end }}
{{- $args := $values.args }}
{{- with .root.Values.loadBalancerClasses }}
{{- $args = prepend $args (printf "--load-balancer-class=%s" (join "," .)) }}
{{- end }}
{{- $image := printf "%s:%s" .root.Values.image.repository (.root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- range $container := $pod.containers }}
{{- $_ := set $container "image" $image }}
{{- $_ := set $container "args" (concat $container.args $args) }}
{{- if and $.root.Values.frrK8s.namespace (eq $.object.kind "Deployment") }}
{{- $env := dict "name" "FRR_K8S_NAMESPACE" "value" $.root.Values.frrK8s.namespace }}
{{- $_ := set $container "env" (append ($container.env | default list) $env) }}
{{- end }}
{{- with $values.resources }}
{{- $_ := set $container "resources" . }}
{{- end }}
{{- end }}
{{- toYaml .object }}
{{- end }}
