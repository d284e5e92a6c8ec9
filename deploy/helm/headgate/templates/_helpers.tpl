{{- define "headgate.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "headgate.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

{{- define "headgate.claim" -}}
{{ .Values.persistence.existingClaim | default (printf "%s-jobs" .Release.Name) }}
{{- end }}

{{- define "headgate.secret" -}}
{{ .Values.token.existingSecret | default (printf "%s-token" .Release.Name) }}
{{- end }}

{{- define "headgate.labels" -}}
app.kubernetes.io/name: headgate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "headgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "headgate.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}

{{- define "headgate.token" -}}
- name: HEADGATE_TOKEN
  valueFrom: {secretKeyRef: {name: {{ include "headgate.secret" . }}, key: token}}
{{- end }}

{{- define "headgate.probes" -}}
ports:
  - {name: http, containerPort: 8270}
startupProbe:
  httpGet: {path: /healthz, port: http}
  failureThreshold: 30
  periodSeconds: 2
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 10
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http}
{{- end }}
