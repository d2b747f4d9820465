# Three fleets of Mac minis that are Nodes of a Kubernetes cluster: Macs for
# services, runners for customers' jobs, and builders that bake virtual machine
# images. Each Pod is one virtual machine. Try it without an account:
#
#     macfleet -C examples/three-fleets -e production --sandbox init cluster
#     macfleet -C examples/three-fleets -e production --sandbox apply
#     macfleet -C examples/three-fleets -e production --sandbox hosts

macfleet {
  required_version = ">= 0.1.0"
  name             = "acme"
}

variable "runners" {
  description = "How many Macs run customers' jobs."
  type        = number
  default     = 9
}

variable "quiet_hours" {
  description = "When hosts may be drained, rebooted or wiped."
  type        = list(string)
  default     = ["daily 00:00-24:00"]
}

variable "tailnet" {
  description = "Whether hosts join the tailnet, where their metrics are served."
  type        = bool
  default     = false
}

environment "canary" {
  cluster_uid = "7c3a9f10-2b4d-4e6f-8a91-c0d2e4f60718"
  project_id  = "1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f9"
  variables   = { runners = 2 }
}

environment "production" {
  cluster_uid = "0b1f4c52-6a0e-4d0b-9a55-3f1f5d2c7e10"
  project_id  = "5d6e8f70-1b2c-4d3e-8f90-a1b2c3d4e5f6"
  variables   = { quiet_hours = ["Mon-Fri 22:00-06:00 Europe/Paris", "Sat,Sun 00:00-24:00 Europe/Paris"] }
}

scaleway {
  zones       = ["fr-par-1", "fr-par-3"]
  pool_prefix = "acme-pool-"
}

kubernetes {
  context      = "acme-${env.name}"
  api_server   = "https://api.${env.name}.acme.dev:6443" # as the hosts reach it
  namespace    = "macfleet"
  label_prefix = "acme.dev"
}

ssh {
  user        = "m1"
  private_key = secret("k8s://macfleet/fleet-ssh/id_ed25519")
}

# An App that may manage the organization's self-hosted runners, and nothing else.
github_app "builders" {
  app_id          = secret("op://acme/BUILDERS/app-id")
  installation_id = secret("op://acme/BUILDERS/installation-id")
  private_key     = secret("op://acme/BUILDERS/private-key")
}

# Hosts join a tailnet, and serve their metrics only there: --var tailnet=true. With false they leave it.
tailnet {
  enabled       = var.tailnet
  auth          = secret("op://acme/TAILSCALE/oauth-client-secret")
  tags          = ["tag:macmini-${env.name}"]
  device_budget = 50
}

# Limits of one run, whatever its plan contains.
guardrails {
  max_hosts = 20
  windows   = var.quiet_hours
}
