# Comes before tart_kubelet-run where the host joins the tailnet. A kubelet with --node-ip-source=tailscale exits at once
# without one, so nothing is changed until tailscaled is Running: the step that joins may not have been part of the plan.
if ! /bin/sh -c 'exec /usr/local/bin/tailscale wait --timeout=30s' >/dev/null 2>&1 </dev/null; then
  echo "this host is not in the tailnet, and the kubelet exits at once without it; nothing was changed; fix: macfleet apply with the step tailscale" >&2
  exit 1
fi
