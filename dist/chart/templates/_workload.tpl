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
{{- $image := printf "%s:%s" .root.Values.image.repository (.root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- range $container := $pod.containers }}
{{- $_ := set $container "image" $image }}
{{- $_ := set $container "args" (concat $container.args $values.args) }}
{{- with $values.resources }}
{{- $_ := set $container "resources" . }}
{{- end }}
{{- end }}
{{- toYaml .object }}
{{- end }}
